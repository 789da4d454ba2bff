"""Four workers: 3 ms of CPU under the interpreter's lock, then a wait that varies, 12 ms on average."""

import os
import random
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
                    end = time.thread_time() + 0.003
                    while time.thread_time() < end:
                        pass
                    time.sleep(random.expovariate(1 / 0.012))
                    connection.sendall(ANSWER)
            except OSError:
                pass


for _ in range(4):
    threading.Thread(target=work).start()
