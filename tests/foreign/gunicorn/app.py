"""What a parcel costs: asks a carrier, then adds the shop's own prices."""

import time

from flask import Flask, jsonify, request

app = Flask(__name__)
ZONES = {"near": 490, "far": 990, "abroad": 1990}
WRAPPINGS = [("none", 0), ("paper", 150), ("box", 300)]


def ask_carrier(zone, grams):
    # A call over the network.
    time.sleep(0.015)
    return ZONES[zone] + grams // 10


@app.get("/quote")
def quote():
    zone, grams = request.args.get("zone", "near"), request.args.get("grams", 500, int)
    if zone not in ZONES:
        return jsonify(error=f"no zone {zone}"), 400
    cents = ask_carrier(zone, grams)
    offers = [{"wrapping": name, "cents": cents + extra} for name, extra in WRAPPINGS]
    return jsonify(zone=zone, grams=grams, offers=offers)
