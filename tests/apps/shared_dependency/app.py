"""20 ms asleep, and then 20 ms with a lock that all instances share: one of them at a time."""

import fcntl
import http.server
import os
import time


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.02)
        with open(__file__) as shared:
            fcntl.flock(shared, fcntl.LOCK_EX)
            time.sleep(0.02)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
