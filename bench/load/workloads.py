"""What the generators are given to do, and what Tenfold is to reach in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Server(Enum):
    """What they do it to."""

    FILES = "bench-origin"
    SHOP = "bench-origin, a shop"
    TLS = "nginx, TLS"
    HTTP2 = "nginx, HTTP/2"


class Need(Enum):
    """What not every generator can do."""

    HTTP1 = "plain HTTP/1.1"
    TLS = "TLS"
    MANY = "10,000 connections"
    HTTP2 = "HTTP/2"
    SCRIPT = "Artillery scripts"


@dataclass(frozen=True)
class Goal:
    """CPU a request of one of Tenfold's engines, over another generator's, at most."""

    ours: str
    peer: str
    at_most: float


@dataclass(frozen=True)
class Work:
    name: str
    title: str
    server: Server
    need: Need
    connections: int
    # What the others are compared with.
    yardstick: str
    goals: tuple[Goal, ...] = ()
    # Streams at once on a connection of HTTP/2.
    streams: int = 1


TENFOLD = "Tenfold"
URING, EPOLL = f"{TENFOLD}, io_uring", f"{TENFOLD}, epoll"
WRK, OHA, H2LOAD, ARTILLERY = "wrk", "oha", "h2load", "Artillery"

WORKS = (
    Work(
        "small",
        "64 connections, 128-byte answer",
        Server.FILES,
        Need.HTTP1,
        64,
        WRK,
        (Goal(URING, WRK, 0.75), Goal(EPOLL, WRK, 1.05), Goal(URING, OHA, 0.75)),
    ),
    Work(
        "tls",
        "64 connections, TLS 1.3, 128-byte answer",
        Server.TLS,
        Need.TLS,
        64,
        WRK,
        (Goal(URING, WRK, 1.0), Goal(EPOLL, WRK, 1.0)),
    ),
    Work(
        "many",
        "10,000 connections, 128-byte answer",
        Server.FILES,
        Need.MANY,
        10_000,
        WRK,
        (Goal(URING, WRK, 1.0), Goal(EPOLL, WRK, 1.0)),
    ),
    Work(
        "http2",
        "HTTP/2, 64 connections, 128-byte answer",
        Server.HTTP2,
        Need.HTTP2,
        64,
        H2LOAD,
    ),
    Work(
        "http2-10",
        "HTTP/2, 64 connections with 10 streams each, 128-byte answer",
        Server.HTTP2,
        Need.HTTP2,
        64,
        H2LOAD,
        streams=10,
    ),
    # Requests a second and core, at least 50 times as many.
    Work(
        "script",
        "An Artillery script of 20 steps with captures, 64 users",
        Server.SHOP,
        Need.SCRIPT,
        64,
        ARTILLERY,
        (Goal(TENFOLD, ARTILLERY, 1 / 50),),
    ),
)
