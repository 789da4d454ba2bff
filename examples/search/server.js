// A product search whose cost is pure CPU: one thread computes, and all other requests wait for it.
"use strict";

const express = require("express");

const port = wholeNumber("PORT", 4500, 1, 65535);
// In a container it is 0.0.0.0, which others reach.
const host = process.env.HOST ?? "127.0.0.1";
// The cost of a request grows by 1.6 with each step.
const maxNumber = wholeNumber("MAX_NUMBER", 35, 1, 45);

const app = express();
app.disable("x-powered-by");

app.get("/", (_request, response) => {
  response.type("text").send("Hello from the product search.\n");
});

app.get("/products/search", (_request, response) => {
  response.json({ result: fibonacci(maxNumber), processId: process.pid });
});

const server = app.listen(port, host, (error) => {
  if (error) {
    console.error(`search: cannot listen on port ${port} (${error.code}); choose another with PORT`);
    process.exit(1);
  }
  console.log(`search: process ${process.pid} on port ${port}, MAX_NUMBER ${maxNumber}`);
});
// Longer than a balancer keeps an idle connection, so that it is the balancer that closes it and
// no request meets a connection that is just being closed here.
server.keepAliveTimeout = 75_000;

function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

function wholeNumber(name, preset, least, most) {
  const text = process.env[name] ?? String(preset);
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value) || value < least || value > most) {
    console.error(`search: ${name} is "${text}"; set it to a whole number from ${least} to ${most}`);
    process.exit(2);
  }
  return value;
}
