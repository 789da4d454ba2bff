// Waits 50 ms for each request, for any number of them at once, as an app does whose work is elsewhere.
"use strict";
const http = require("node:http");

http
  .createServer((request, response) => {
    setTimeout(() => response.end("slept\n"), 50);
  })
  .listen(Number(process.env.PORT), "127.0.0.1");
