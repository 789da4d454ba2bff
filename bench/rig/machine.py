"""The machine: what it is, and who else used it meanwhile."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rig.child import CLOCK_TICK_S, PROC, ticks

# Seconds of CPU of processes that are not the benchmark's, or taken by the hypervisor, in a
# second: beyond this a round is disturbed. A clock tick alone is 0.003 in a window of 3 s.
DISTURBED_CORES = 0.05


@dataclass(frozen=True)
class Machine:
    model: str
    cores: int
    # Cores that share a physical one with core 0.
    siblings: str
    memory_bytes: int
    kernel: str
    congestion_control: str
    distribution: str


@dataclass(frozen=True)
class Noise:
    """Cores that others used during a window."""

    others: float
    stolen: float

    @property
    def disturbed(self) -> bool:
        return self.others + self.stolen > DISTURBED_CORES


class Quiet:
    """Watches everybody but the processes that are known."""

    def __init__(self, known: set[int]) -> None:
        self._known = known | {os.getpid()}
        self._began = time.monotonic()
        self._before = self._used()
        self._stolen = _stolen_s()

    def noise(self) -> Noise:
        seconds = time.monotonic() - self._began
        # One that has ended meanwhile has left its time, all of its life's, to its parent.
        others = max(0.0, self._used() - self._before)
        return Noise(others / seconds, (_stolen_s() - self._stolen) / seconds)

    def _used(self) -> float:
        pids = (int(path.name) for path in PROC.iterdir() if path.name.isdigit())
        times = (ticks(pid) for pid in pids if pid not in self._known)
        return sum(each.user + each.system + each.children for each in times)


def sentence(machine: Mapping[str, Any], began: str, finished: str) -> str:
    """Where and when was measured, of a machine as it was recorded."""
    return (
        f"Measured {began} to {finished or 'an early end'} on {machine['cores']} cores of "
        f"{machine['model']}, {machine['memory_bytes'] / 2**30:.0f} GiB, "
        f"{machine['distribution']}, Linux {machine['kernel']} with "
        f"TCP {machine['congestion_control']}. "
    )


def describe() -> Machine:
    return Machine(
        model=_field(Path("/proc/cpuinfo"), "model name", ":") or platform.machine(),
        cores=os.cpu_count() or 1,
        siblings=_line(Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=platform.release(),
        congestion_control=_line(Path("/proc/sys/net/ipv4/tcp_congestion_control")),
        distribution=_field(Path("/etc/os-release"), "PRETTY_NAME", "=").strip('"'),
    )


def _stolen_s() -> float:
    return int(_line(Path("/proc/stat")).split()[8]) * CLOCK_TICK_S


def _line(path: Path) -> str:
    try:
        return path.read_text().splitlines()[0]
    except (OSError, IndexError):
        return ""


def _field(path: Path, name: str, separator: str) -> str:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return ""
    found = (line.partition(separator) for line in lines if line.startswith(name))
    return next((value.strip() for _, _, value in found), "")
