"""Processes that the benchmark starts: pinned to cores, measured as a tree, ended by their id."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
PR_SET_PDEATHSIG = 1
PATIENCE_S = 10.0


class ChildFailed(Exception):
    """A process that the benchmark needs did not start or ended early."""


@dataclass(frozen=True)
class Memory:
    """Bytes of a process and those below it."""

    rss: int
    pss: int


class Child:
    """A running process. It dies with the benchmark, however that ends."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        cores: Sequence[int],
        output: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._output = output
        libc = ctypes.CDLL(None)

        def before_exec() -> None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            os.sched_setaffinity(0, cores)

        with output.open("ab") as sink:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env={**os.environ, **(environment or {})},
                preexec_fn=before_exec,
            )

    def await_ports(self, ports: Sequence[int]) -> None:
        """Returns once every port accepts a connection."""
        give_up = time.monotonic() + PATIENCE_S
        for port in ports:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError as error:
                    if self.ended() or time.monotonic() > give_up:
                        state = "ended" if self.ended() else "is not listening"
                        said = self.said()[-2000:]
                        raise ChildFailed(
                            f"{self.name} {state} (port {port}: {error}); it said:\n{said}"
                        ) from error
                    time.sleep(0.02)

    def await_saying(self, what: str, patience_s: float) -> None:
        """Returns once it has said so."""
        give_up = time.monotonic() + patience_s
        while what not in self.said():
            if self.ended() or time.monotonic() > give_up:
                raise ChildFailed(f"{self.name} has not said {what!r}, but:\n{self.said()[-2000:]}")
            time.sleep(0.005)

    def tree(self) -> list[int]:
        """Its process id and those of all processes below it."""
        found = [self._process.pid]
        for pid in found:
            # It may be gone by now.
            with contextlib.suppress(FileNotFoundError):
                for children in PROC.glob(f"{pid}/task/*/children"):
                    found.extend(int(child) for child in _read(children).split())
        return found

    def cpu_ns(self) -> int:
        """CPU time of all of its threads so far, user and system, to the nanosecond."""
        return sum(thread_ns(pid) for pid in self.tree())

    def split(self) -> tuple[float, float]:
        """Seconds of user and of system time so far, to a clock tick."""
        times = [ticks(pid) for pid in self.tree()]
        return sum(t.user for t in times), sum(t.system for t in times)

    def memory(self) -> Memory:
        rss = pss = 0
        for pid in self.tree():
            for line in _read(PROC / str(pid) / "smaps_rollup").splitlines():
                key, _, value = line.partition(":")
                if key == "Rss":
                    rss += int(value.split()[0]) * 1024
                elif key == "Pss":
                    pss += int(value.split()[0]) * 1024
        return Memory(rss, pss)

    def finish(self, patience_s: float) -> str:
        """What it said, once it has ended by itself."""
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise ChildFailed(f"{self.name} has not ended; it said:\n{self.said()}") from error
        return self.said()

    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def ended(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        if self.ended():
            return
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self.ended():
            return
        for pid in self.tree():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()


@dataclass(frozen=True)
class Ticks:
    """Seconds of CPU of a process, and of its children that have ended."""

    user: float
    system: float
    children: float


CLOCK_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def ticks(pid: int) -> Ticks:
    fields = _read(PROC / str(pid) / "stat").rpartition(")")[2].split()
    if len(fields) < 15:
        return Ticks(0, 0, 0)
    user, system, children_user, children_system = (int(n) * CLOCK_TICK_S for n in fields[11:15])
    return Ticks(user, system, children_user + children_system)


def thread_ns(pid: int) -> int:
    stats = (_read(stat).split() for stat in PROC.glob(f"{pid}/task/*/schedstat"))
    return sum(int(fields[0]) for fields in stats if fields)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _read(path: Path) -> str:
    """What a process has to say of itself, or nothing if it has ended."""
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
