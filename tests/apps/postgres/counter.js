// Counts every request in one row of a PostgreSQL database, which takes the row's lock for 8 ms: a
// database that all instances share, and that does one of these at a time.
"use strict";
const http = require("node:http");
const { Pool } = require("pg");

const pool = new Pool({ max: 4 });

http
  .createServer(async (request, response) => {
    try {
      const counted = await pool.query("SELECT count_one()");
      response.end(`${counted.rows[0].count_one}\n`);
    } catch (error) {
      response.statusCode = 500;
      response.end(`${error.message}\n`);
    }
  })
  .listen(Number(process.env.PORT), "127.0.0.1");
