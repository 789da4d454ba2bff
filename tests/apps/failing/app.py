"""Every twentieth answer is a 500, whatever the load."""

import http.server
import itertools
import os

requests = itertools.count(1)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500 if next(requests) % 20 == 0 else 200)
        self.end_headers()

    def log_message(self, *arguments):
        pass


http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
