// Invoices in two processes that share the port, as Node's own cluster module does it.
"use strict";
const cluster = require("node:cluster");
const http = require("node:http");

function invoice(number) {
  const lines = Array.from({ length: 400 }, (_, i) => ({ article: `article ${(number * 31 + i) % 997}`, pieces: (i % 5) + 1, cents: (i * 7919) % 9000 }));
  const format = new Intl.NumberFormat("en", { style: "currency", currency: "EUR" });
  const priced = lines.map((line) => ({ ...line, price: format.format((line.pieces * line.cents) / 100) }));
  const total = lines.reduce((sum, line) => sum + line.pieces * line.cents, 0);
  return { number, lines: priced, total: format.format(total / 100) };
}

if (cluster.isPrimary) {
  for (let i = 0; i < 2; i++) cluster.fork();
  process.on("SIGTERM", () => process.exit(0));
} else {
  http
    .createServer((request, response) => {
      const number = Number(new URL(request.url, "http://localhost").searchParams.get("number") ?? 1);
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify(invoice(number)));
    })
    .listen(Number(process.env.PORT), "127.0.0.1");
}
