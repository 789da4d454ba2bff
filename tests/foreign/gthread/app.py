"""The page of a customer's orders, which another service keeps."""

import time

from flask import Flask, render_template, request

app = Flask(__name__)
STATES = ("paid", "packed", "sent", "received")


def orders_of(customer):
    # A call of the service that keeps them.
    time.sleep(0.02)
    return [
        {"number": customer * 100 + i, "state": STATES[i % 4], "cents": i * 731 % 9000, "items": i % 7 + 1}
        for i in range(40)
    ]


@app.get("/orders")
def orders():
    customer = request.args.get("customer", 1, int)
    listed = orders_of(customer)
    total = sum(order["cents"] for order in listed)
    return render_template("orders.html", customer=customer, orders=listed, total=total)
