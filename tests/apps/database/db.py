"""A database of one thread: each query, a line, costs it CPU of so many milliseconds."""

import os
import selectors
import socket
import sys
import time

COST = float(os.environ.get("COST", "0.01"))

selector = selectors.DefaultSelector()
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=512)
selector.register(server, selectors.EVENT_READ)
while True:
    for key, _ in selector.select():
        if key.fileobj is server:
            selector.register(server.accept()[0], selectors.EVENT_READ)
            continue
        connection = key.fileobj
        if not connection.recv(100):
            selector.unregister(connection)
            connection.close()
            continue
        end = time.thread_time() + COST
        while time.thread_time() < end:
            pass
        connection.sendall(b"row\n")
