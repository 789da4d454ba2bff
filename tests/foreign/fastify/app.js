// A search by name: ranks all flights and answers with the best, by a schema.
"use strict";
const fastify = require("fastify")();

const airports = ["AMS", "BCN", "CDG", "DUB", "FRA", "HEL", "LIS", "MAD", "OSL", "VIE"];
const flights = Array.from({ length: 7000 }, (_, i) => ({
  number: `TF${1000 + i}`,
  from: airports[i % 10],
  to: airports[(i * 7 + 3) % 10],
  minutes: 40 + ((i * 37) % 200),
  cents: 2900 + ((i * 7919) % 30000),
}));
const string = { type: "string" };
const integer = { type: "integer" };
const flight = { type: "object", properties: { number: string, from: string, to: string, minutes: integer, cents: integer } };
const schema = { response: { 200: { type: "object", properties: { found: integer, flights: { type: "array", items: flight } } } } };

fastify.get("/flights", { schema }, async (request) => {
  const most = Number(request.query.most ?? 30000);
  const found = flights.filter((each) => each.cents <= most && each.from !== each.to);
  found.sort((a, b) => a.minutes - b.minutes || a.number.localeCompare(b.number));
  return { found: found.length, flights: found.slice(0, 60) };
});

fastify.listen({ port: Number(process.env.PORT), host: "127.0.0.1" });
