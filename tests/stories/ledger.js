// An app that answers at once and writes down, before it answers, the body of each POST: LEDGER names
// the file. At SIGTERM it finishes what it has.
const http = require('http');
const fs = require('fs');

const ledger = process.env.LEDGER && fs.openSync(process.env.LEDGER, 'a');

const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', (piece) => { body += piece; });
  request.on('end', () => {
    if (request.method === 'POST') fs.writeSync(ledger, body + '\n');
    response.end('ok');
  });
});

process.on('SIGTERM', () => server.close(() => process.exit(0)));
server.listen(Number(process.env.PORT), '127.0.0.1');
