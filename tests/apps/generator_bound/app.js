// 200 ms of waiting, any number of requests at once: whoever is to measure it needs a connection for each.
const http = require("node:http");

http
  .createServer((request, response) => setTimeout(() => response.end("ok\n"), 200))
  .listen(Number(process.env.PORT), "127.0.0.1");
