"""The stock of a warehouse: a pool of five connections to PostgreSQL, and sixteen threads that use it."""

import atexit

from flask import Flask, jsonify, request
from psycopg_pool import ConnectionPool

app = Flask(__name__)
# Where it is stands in PGHOST and its kin.
pool = ConnectionPool("", min_size=5, max_size=5, open=True)
atexit.register(pool.close)
STOCK = "SELECT shelf, count(*), sum(pieces) FROM stock, slow() WHERE kind = %s GROUP BY shelf ORDER BY shelf"


@app.get("/stock")
def stock():
    kind = request.args.get("kind", 1, int)
    with pool.connection() as connection:
        rows = connection.execute(STOCK, [kind]).fetchall()
    return jsonify([{"shelf": shelf, "articles": count, "pieces": pieces} for shelf, count, pieces in rows])
