"""SLEEP s asleep and CPU s computing, then HOLD s with a lock that all instances share: one of them at a time."""

import fcntl
import http.server
import os
import sys
import time

SLEEP = float(os.environ.get("SLEEP", "0.02"))
CPU = float(os.environ.get("CPU", "0"))
HOLD = float(os.environ.get("HOLD", "0.02"))

# Whoever gives the lock back must not wait for long until a thread that computes gives the interpreter back.
sys.setswitchinterval(0.0005)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(SLEEP)
        end = time.thread_time() + CPU
        while time.thread_time() < end:
            pass
        with open(__file__) as shared:
            fcntl.flock(shared, fcntl.LOCK_EX)
            time.sleep(HOLD)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
