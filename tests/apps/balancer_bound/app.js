// Answers of 2 MB that cost the app next to nothing, and the balancer a copy in and a copy out.
const http = require("node:http");

const BODY = Buffer.alloc(2 << 20, "x");

http
  .createServer((request, response) => {
    response.setHeader("Content-Length", BODY.length);
    response.end(BODY);
  })
  .listen(Number(process.env.PORT), "127.0.0.1");
