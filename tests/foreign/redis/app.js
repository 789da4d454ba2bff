// The most viewed articles: every view is counted in a Redis that all instances share.
"use strict";
const http = require("node:http");
const { createClient } = require("redis");

const redis = createClient({ socket: { path: process.env.REDIS_SOCKET } });
redis.on("error", () => {});

http
  .createServer(async (request, response) => {
    try {
      const article = new URL(request.url, "http://localhost").searchParams.get("article") ?? "1";
      const views = await redis.zIncrBy("views", 1, article);
      const [top, total] = await Promise.all([redis.zRangeWithScores("views", 0, 9, { REV: true }), redis.incr("total")]);
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify({ article, views, total, top }));
    } catch (error) {
      response.statusCode = 500;
      response.end(`${error.message}\n`);
    }
  })
  .listen(Number(process.env.PORT), "127.0.0.1");

redis.connect();
