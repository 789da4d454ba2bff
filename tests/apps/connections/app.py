"""Serves one connection at a time until it is closed, or with `threads` each in a thread. A request takes 10 ms."""

import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # One write an answer: with two, a kept connection waits 40 ms for an acknowledgement.

    def do_GET(self):
        time.sleep(0.01)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


kind = ThreadingHTTPServer if "threads" in sys.argv else HTTPServer
kind(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
