"""A request takes 10 ms. The first argument says how requests and connections share the process:

one      one connection at a time, until it is closed
request  one request at a time, on any number of connections
threads  a thread for each connection
pool     four threads, each with a connection until it is closed
async    an event loop
slow     as threads, and listens two seconds after its start
http10   as threads, and speaks HTTP/1.0, so that each connection has one request
port     as threads, at the port of the second argument
"""

import asyncio
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

WORK_S = 0.01
kind = sys.argv[1]
port = int(sys.argv[2] if kind == "port" else os.environ["PORT"])
turn = threading.Lock() if kind == "request" else threading.BoundedSemaphore(1000)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0" if kind == "http10" else "HTTP/1.1"
    wbufsize = -1  # One write an answer: with two, a kept connection waits 40 ms for an acknowledgement.

    def do_GET(self):
        with turn:
            time.sleep(WORK_S)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


class PooledServer(ThreadingHTTPServer):
    pool = ThreadPoolExecutor(4)

    def process_request(self, request, client_address):
        self.pool.submit(self.process_request_thread, request, client_address)


async def answer(reader, writer):
    is_last = False
    while not is_last and (await reader.readline()).strip():
        while header := (await reader.readline()).strip().lower():
            is_last |= header == b"connection: close"
        await asyncio.sleep(WORK_S)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
    writer.close()


async def serve():
    async with await asyncio.start_server(answer, "127.0.0.1", port) as server:
        await server.serve_forever()


if kind == "slow":
    time.sleep(2)
if kind == "async":
    asyncio.run(serve())
server = {"one": HTTPServer, "pool": PooledServer}.get(kind, ThreadingHTTPServer)
server(("127.0.0.1", port), Handler).serve_forever()
