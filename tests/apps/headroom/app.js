// 20 ms of waiting, any number of requests at once: more than enough for what is asked of it.
const http = require("node:http");

http
  .createServer((request, response) => setTimeout(() => response.end("ok\n"), 20))
  .listen(Number(process.env.PORT), "127.0.0.1");
