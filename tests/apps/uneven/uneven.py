"""One request at a time; nine of ten wait for 4 ms, the tenth for 60 ms."""

import os
import random
import socket
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=512)

while True:
    connection, _ = listener.accept()
    with connection:
        try:
            if connection.recv(65536):
                time.sleep(0.06 if random.random() < 0.1 else 0.004)
                connection.sendall(ANSWER)
        except OSError:
            pass
