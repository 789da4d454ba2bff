"""What a run needs around it: programs, a directory in memory, a certificate, an origin."""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from child import Child, free_ports
from proxies import AccessLog, Kind, Programs, Proxy, Site, discard, make_certificate, start

MEMORY = Path("/dev/shm")
FILES = 25_000


@dataclass(frozen=True)
class Cores:
    """The proxy has one; the origin, the generator and this program have the others."""

    proxy: int
    others: list[int]


class Stage:
    """Ends everything that was started on it when it is left."""

    def __init__(self, programs: Programs) -> None:
        self._stack = ExitStack()
        self._programs = programs
        self.cores = _cores()

    def __enter__(self) -> Stage:
        # Below this, children inherit: nothing but a proxy ever runs on its core.
        os.sched_setaffinity(0, self.cores.others)
        _raise_file_limit()
        parent = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.directory = Path(tempfile.mkdtemp(prefix="tenfold-bench-", dir=parent))
        # The worker processes of nginx are not root.
        self.directory.chmod(0o755)
        self._stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        try:
            self.origin = self._start_origin()
            self.site = self._site()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def proxy(self, kind: Kind, log: AccessLog) -> Proxy:
        """Lives as long as the stage, or until it is discarded."""
        proxy = start(kind, self.site, log)
        self._stack.callback(discard, proxy)
        return proxy

    def discard(self, proxy: Proxy) -> None:
        discard(proxy)

    def child(self, child: Child) -> Child:
        self._stack.callback(child.stop)
        return child

    def _start_origin(self) -> Child:
        self._origin_port = free_ports(1)[0]
        command = [str(self._programs.origin), "files", f"127.0.0.1:{self._origin_port}"]
        output = self.directory / "origin"
        origin = self.child(Child("the origin", command, self.cores.others, output))
        origin.await_ports([self._origin_port])
        return origin

    def _site(self) -> Site:
        certificate, key = make_certificate(self.directory)
        bundle = self.directory / "bundle.pem"
        bundle.write_text(certificate.read_text() + key.read_text())
        return Site(
            programs=self._programs,
            directory=self.directory,
            certificate=certificate,
            key=key,
            bundle=bundle,
            origin=f"127.0.0.1:{self._origin_port}",
            core=self.cores.proxy,
        )


def _cores() -> Cores:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        sys.exit("bench: one core for the proxy and one for the rest are needed: give it two")
    return Cores(allowed[0], allowed[1:])


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, FILES)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
    except (ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
