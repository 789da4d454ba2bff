"""Eight workers, each asleep for 50 ms in a request. No further request is read meanwhile."""

import os
import socket
import threading
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=512)


def work():
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                if connection.recv(65536):
                    time.sleep(0.05)
                    connection.sendall(ANSWER)
            except OSError:
                pass


workers = [threading.Thread(target=work) for _ in range(8)]
for worker in workers:
    worker.start()
