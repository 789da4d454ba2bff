"""Memory of each proxy with many client connections that have had an answer and say nothing."""

from __future__ import annotations

import itertools
import resource
import socket
import sys
import time

from proxy_stage import ProxyStage
from proxies import AccessLog, Kind, discard
from results import Idle

CONNECTIONS = 10_000
# Of the files that it may open, Tenfold lets clients have half, and one address three quarters of that.
SPARE_FILES = 200
ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
REQUEST = b"GET /128 HTTP/1.1\r\nHost: localhost\r\n\r\n"
# Of the answer: the header, and 128 bytes.
END_OF_HEADER = b"\r\n\r\n"
SETTLE_S = 0.5


def measure(stage: ProxyStage, kinds: list[Kind]) -> dict[str, Idle]:
    return {kind.name: _one(stage, kind) for kind in kinds}


def _one(stage: ProxyStage, kind: Kind) -> Idle:
    proxy = stage.proxy(kind, AccessLog.OFF)
    clients: list[socket.socket] = []
    connections = min(CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2 - SPARE_FILES)
    try:
        before = proxy.child.memory()
        for address in itertools.islice(itertools.cycle(ADDRESSES), connections):
            client = socket.create_connection(("127.0.0.1", proxy.plain), 10, (address, 0))
            clients.append(client)
            _ask(client)
        time.sleep(SETTLE_S)
        after = proxy.child.memory()
    finally:
        for client in clients:
            client.close()
        discard(proxy)
    idle = Idle(connections, before.rss, after.rss, before.pss, after.pss)
    print(f"idle      {kind.name:8} {idle.rss >> 20} MiB", file=sys.stderr, flush=True)
    return idle


def _ask(client: socket.socket) -> None:
    client.sendall(REQUEST)
    answer = b""
    while len(answer) < answer.find(END_OF_HEADER) + len(END_OF_HEADER) + 128:
        piece = client.recv(4096)
        if not piece:
            raise ConnectionError("a proxy closed a connection before its answer was complete")
        answer += piece
