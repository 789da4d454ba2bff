"""The servers under load: they say themselves how many requests they have had."""

from __future__ import annotations

import http.client
import re
from dataclasses import dataclass
from pathlib import Path

from workloads import Server

from rig.child import Child, free_ports
from rig.stage import Stage, make_certificate

HERE = Path(__file__).parent
# Of the origin, which tells its counts there; nginx has a port of its own for that.
COUNTS = "/counts"


@dataclass(frozen=True)
class Counts:
    requests: int
    connections: int


@dataclass
class Target:
    """A running server."""

    url: str
    child: Child
    # Where it tells its counts. That connection and what it asks for are not counted.
    status: http.client.HTTPConnection
    asked: int = 0

    def counts(self) -> Counts:
        self.asked += 1
        self.status.request("GET", COUNTS)
        numbers = re.findall(r"\d+", self.status.getresponse().read().decode())
        if len(numbers) == 2:
            requests, connections = map(int, numbers)
        else:
            # Of nginx: active connections; accepted, handled, requests; reading, writing, waiting.
            connections, _, _, requests, *_ = map(int, numbers)
        return Counts(requests - self.asked, connections - 1)


class Bench(Stage):
    """Where the generators are measured: servers that live as long as it."""

    def __init__(self, origin: Path) -> None:
        super().__init__()
        self._origin = origin
        self._targets: dict[Server, Target] = {}

    def target(self, server: Server) -> Target:
        if server not in self._targets:
            self._targets[server] = self._start(server)
        return self._targets[server]

    def origin(self, *words: str) -> Child:
        """The origin with another job, on the other cores."""
        command = [str(self._origin), *words]
        output = self.directory / f"origin-{'-'.join(words)}"
        return self.child(Child("the origin", command, self.cores.others, output))

    def _start(self, server: Server) -> Target:
        match server:
            case Server.FILES:
                return self._origin_target("files", "/128")
            case Server.SHOP:
                return self._origin_target("shop", "")
            case Server.TLS:
                return self._nginx("https", "tls")
            case Server.HTTP2:
                return self._nginx("http", "http2")

    def _origin_target(self, job: str, path: str) -> Target:
        port = free_ports(1)[0]
        child = self.origin(job, f"127.0.0.1:{port}")
        child.await_ports([port])
        return Target(f"http://127.0.0.1:{port}{path}", child, _status(port))

    def _nginx(self, scheme: str, listens: str) -> Target:
        port, status = free_ports(2)
        directory = self.directory / f"nginx-{port}"
        directory.mkdir(mode=0o755)
        certificate, key = make_certificate(directory)
        values = {
            "dir": str(directory),
            "listen": f"127.0.0.1:{port} " + {"tls": "ssl", "http2": "http2"}[listens],
            "status": f"127.0.0.1:{status}",
            "certificate": str(certificate),
            "key": str(key),
            "body": "x" * 128,
        }
        text = (HERE / "nginx.conf").read_text()
        configuration = directory / "nginx.conf"
        configuration.write_text(re.sub(r"\{\{(\w+)\}\}", lambda name: values[name[1]], text))
        command = ["nginx", "-e", "stderr", "-c", str(configuration)]
        child = self.child(Child("nginx", command, self.cores.others, directory / "output"))
        child.await_ports([port, status])
        return Target(f"{scheme}://127.0.0.1:{port}/128", child, _status(status))


def _status(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=10)
