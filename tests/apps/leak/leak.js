// Answers one request after the other, 10 ms each, and keeps a quarter of a megabyte of every one.
"use strict";
const http = require("node:http");

const kept = [];
let last = Promise.resolve();

http
  .createServer((request, response) => {
    last = last.then(
      () =>
        new Promise((done) =>
          setTimeout(() => {
            kept.push(Buffer.alloc(256 * 1024, kept.length));
            response.end("kept\n");
            done();
          }, 10),
        ),
    );
  })
  .listen(Number(process.env.PORT), "127.0.0.1");
