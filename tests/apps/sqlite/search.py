"""Looks for a word in a table of SQLite's that has no index for it: the database is in the process,
and so is its CPU."""

import os
import sqlite3
from http.server import BaseHTTPRequestHandler, HTTPServer

ROWS = 120_000

database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE product (name TEXT, price INTEGER)")
rows = ((f"product {i * 7919 % ROWS} of the catalogue", i % 1000) for i in range(ROWS))
database.executemany("INSERT INTO product VALUES (?, ?)", rows)


class Server(HTTPServer):
    request_queue_size = 512


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        query = "SELECT count(*), sum(price) FROM product WHERE name LIKE '%777%'"
        body = f"{database.execute(query).fetchone()}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code="-", size="-"):
        """Says nothing."""


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
