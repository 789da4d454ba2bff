// One thread that computes for some 15 ms and never waits.
const http = require("node:http");

function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

http
  .createServer((request, response) => response.end(`${fibonacci(30)}\n`))
  .listen(Number(process.env.PORT), "127.0.0.1");
