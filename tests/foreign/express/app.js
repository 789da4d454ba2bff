// A guest book: the newest entries as a page.
"use strict";
const express = require("express");

const app = express();
const entries = Array.from({ length: 300 }, (_, i) => ({
  name: `guest ${i}`,
  text: `It was <nice> to be here for ${i % 14} days & more.`,
  at: new Date(1700000000000 + i * 3600000),
}));

const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const item = (entry) => `<li><b>${escaped(entry.name)}</b> ${entry.at.toISOString()}: ${escaped(entry.text)}</li>`;

app.get("/", (request, response) => {
  const from = Number(request.query.from ?? 0);
  const newest = [...entries].sort((a, b) => b.at - a.at).slice(from, from + 25);
  response.send(`<!doctype html><title>Guests</title><ul>${newest.map(item).join("\n")}</ul>`);
});

app.listen(Number(process.env.PORT), "127.0.0.1");
