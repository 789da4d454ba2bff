"""A thread for every request, and a pool of five connections to a database that answers in 40 ms."""

import http.server
import os
import queue
import socket
import threading
import time

database = socket.create_server(("127.0.0.1", 0), backlog=16)


def serve_queries(connection):
    while connection.recv(64):
        time.sleep(0.04)
        connection.sendall(b"row\n")


def accept_queries():
    while True:
        connection, _ = database.accept()
        threading.Thread(target=serve_queries, args=(connection,), daemon=True).start()


threading.Thread(target=accept_queries, daemon=True).start()
pool = queue.Queue()
for _ in range(5):
    pool.put(socket.create_connection(database.getsockname()))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(float(os.environ.get("SLEEP", "0")))
        connection = pool.get()
        connection.sendall(b"query\n")
        row = connection.recv(64)
        pool.put(connection)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(row)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
