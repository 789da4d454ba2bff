"""What the proxies are given to do, and what Tenfold is to reach in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from proxies import Feature


class Tool(Enum):
    """What puts the proxies under load."""

    WRK = "wrk"
    H2LOAD = "h2load"
    # `tenfold load`, at a fixed rate.
    TENFOLD = "tenfold load"


@dataclass(frozen=True)
class Work:
    name: str
    title: str
    path: str
    tool: Tool
    connections: int
    # Tenfold's CPU a request, over that of the best of `against`, at most.
    goal: float
    against: tuple[str, ...] = ("nginx", "HAProxy")
    needs: frozenset[Feature] = frozenset()
    # Streams at once on a connection of HTTP/2.
    streams: int = 1
    upload: bool = False
    # New connections a second, a request on each; the other works keep theirs.
    rate: int | None = None
    # p50 and p99 are measured at half of the slowest proxy's capacity. The generator that counts
    # from the intended send time speaks plain HTTP/1.1.
    open_loop: bool = False
    # Rounds, as a multiple of those of the other works: mostly idle cores spread it wider.
    repeats: int = 1


TLS = frozenset({Feature.TLS})
HTTP2 = frozenset({Feature.TLS, Feature.HTTP2})

WORKS = (
    Work("small", "128-byte answer", "/128", Tool.WRK, 64, 0.80, open_loop=True),
    Work("many", "128-byte answer, 1,000 connections", "/128", Tool.WRK, 1000, 0.85),
    Work("16k", "16 KB answer", "/16384", Tool.WRK, 64, 0.95, open_loop=True),
    Work("1m", "1 MB answer", "/1048576", Tool.WRK, 64, 1.0, open_loop=True),
    Work("upload", "1 MB upload", "/128", Tool.WRK, 64, 1.0, upload=True),
    Work("tls", "TLS 1.3, 128-byte answer", "/128", Tool.WRK, 64, 0.95, needs=TLS),
    Work(
        "http2",
        "HTTP/2 client, 128-byte answer",
        "/128",
        Tool.H2LOAD,
        64,
        1.0,
        against=("nginx",),
        needs=HTTP2,
    ),
    Work(
        "http2-10",
        "HTTP/2 client, 10 streams at once, 128-byte answer",
        "/128",
        Tool.H2LOAD,
        64,
        1.0,
        against=("nginx",),
        needs=HTTP2,
        streams=10,
    ),
    Work(
        "new",
        "1,000 new connections a second",
        "/128",
        Tool.TENFOLD,
        0,
        1.0,
        rate=1000,
        repeats=3,
    ),
)
