"""Asks the database of db.py at port DB for each request, through a pool of eight connections."""

import http.server
import os
import queue
import socket

pool = queue.SimpleQueue()
for _ in range(8):
    pool.put(socket.create_connection(("127.0.0.1", int(os.environ["DB"]))))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        connection = pool.get()
        connection.sendall(b"query\n")
        row = connection.recv(100)
        pool.put(connection)
        self.send_response(200)
        self.send_header("Content-Length", str(len(row)))
        self.end_headers()
        self.wfile.write(row)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
