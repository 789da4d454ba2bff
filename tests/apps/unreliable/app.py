"""A server that drops or delays requests: `app.py drop 3` or `app.py stall 1 3`. It prints its port.

`drop N` reads every Nth request and closes its connection without an answer. `stall S P` answers nothing in the last
S seconds of each P. The path `/dropped` says how many requests were dropped so far.
"""

import itertools
import socket
import sys
import threading
import time

habit, *numbers = sys.argv[1:]
numbers = [float(number) for number in numbers]
began = time.monotonic()
count = itertools.count(1)
dropped = []


def wait():
    stall, period = numbers
    phase = (time.monotonic() - began) % period
    if phase > period - stall:
        time.sleep(period - phase)


def serve(connection):
    with connection:
        while request := connection.recv(65536):
            if request.startswith(b"GET /dropped "):
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%d" % len(dropped))
                return
            if habit == "stall":
                wait()
            elif next(count) % int(numbers[0]) == 0:
                dropped.append(1)
                return
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
