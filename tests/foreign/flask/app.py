"""A price list that is filtered, sorted and rendered for every request."""

from flask import Flask, render_template, request

app = Flask(__name__)
PRICES = [{"name": f"article {i}", "group": i % 9, "cents": i * 7919 % 10007} for i in range(3000)]


@app.get("/prices")
def prices():
    group, below = request.args.get("group", 1, int), request.args.get("below", 10000, int)
    listed = [price for price in PRICES if price["group"] == group and price["cents"] < below]
    listed.sort(key=lambda price: price["cents"])
    return render_template("prices.html", group=group, prices=listed[:80])
