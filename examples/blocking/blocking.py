#!/usr/bin/env python3
"""A backend that serves one request at a time and spends nearly all of it waiting.

Each request takes BLOCKING_MS milliseconds (20 unless set): a little CPU, then a blocking wait, as
for a database that answers slowly. So an instance gives at most 1000 / BLOCKING_MS requests a
second, while its CPU idles. PORT is the port (8000 unless set).
"""

import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


class Server(HTTPServer):
    # The default of 5 connections that may wait for the one being served is soon full. Linux then
    # drops the next, and its client tries again after a whole second.
    request_queue_size = 512


class Handler(BaseHTTPRequestHandler):
    # One connection for each request. A server of one thread that kept a connection alive would wait on it
    # for its next request, while all others stand in line. So a client with an idle connection would block
    # everybody. HTTP/1.0 costs a handshake and cannot do that.
    protocol_version = "HTTP/1.0"
    # Nor may a client that connects and says nothing hold the only thread for long (seconds).
    timeout = 2
    # Head and body leave in one packet.
    wbufsize = -1

    def do_GET(self):
        until = time.monotonic() + self.server.service_seconds
        checksum = sum(range(5000))
        time.sleep(max(0.0, until - time.monotonic()))
        body = f'{{"checksum": {checksum}, "process": {os.getpid()}}}\n'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code="-", size="-"):
        """Says nothing: a line for each request costs more than the request's own work."""


def number(name, preset, least, most):
    text = os.environ.get(name, preset)
    try:
        value = float(text)
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        sys.exit(f'blocking: {name} is "{text}"; set it to a number from {least} to {most}')
    return value


def main():
    port = int(number("PORT", "8000", 1, 65535))
    milliseconds = number("BLOCKING_MS", "20", 0, 60_000)
    try:
        server = Server(("127.0.0.1", port), Handler)
    except OSError as error:
        sys.exit(f"blocking: cannot listen on port {port} ({error.strerror}); choose another with PORT")
    server.service_seconds = milliseconds / 1000
    print(f"blocking: process {os.getpid()} on port {port}, {milliseconds:g} ms a request", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
