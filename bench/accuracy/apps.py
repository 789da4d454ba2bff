"""The apps whose curves are predicted and measured, and what truly limits each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rig.options import ROOT


@dataclass(frozen=True)
class App:
    name: str
    # Its folder, with a tenfold.toml.
    folder: str
    language: str
    # The kind of finding that comes first.
    limit: str
    # Every count from 1 to this one is measured.
    most: int
    # What is said otherwise than in its tenfold.toml.
    arguments: tuple[str, ...] = ()
    # What makes it, in its folder.
    build: tuple[str, ...] = ()

    @property
    def config(self) -> Path:
        return ROOT / self.folder / "tenfold.toml"


# The first of them are a table by themselves, should a run be cut short. FibScale and the search are
# smaller than as published, so that a sweep does not take an hour; their shapes are the same.
APPS = (
    App(
        "fibscale",
        "examples/fibscale",
        "Ruby",
        "serialized",
        8,
        ("--env", "FIBSCALE_DELAY=0.1", "--think", "100ms", "--p95", "200ms"),
    ),
    App(
        "search",
        "examples/search",
        "Node.js",
        "cpu_bound",
        4,
        ("--env", "MAX_NUMBER=31", "--rate", "105", "--p95", "300ms"),
    ),
    App("file", "tests/apps/file", "Python", "shared_dependency", 5),
    App("mixed", "tests/apps/mixed", "Go", "serialized", 8),
    App("pool", "tests/apps/pool", "Java", "connection_limited", 6),
    App("threads", "examples/threads", "Java", "oversubscribed", 4),
    App(
        "static-cost",
        "examples/static-cost",
        "C",
        "cpu_throttled",
        4,
        ("--cpus", "0.1", "--memory", "2MB", "--rate", "200", "--p95", "150ms"),
        build=("cc", "-O2", "-static", "-o", "static", "static.c"),
    ),
    App("blocking", "examples/blocking", "Python", "serialized", 11),
    App("cpu", "tests/apps/cpu", "Ruby", "cpu_bound", 4),
    App("sleep", "tests/apps/sleep", "Node.js", "headroom", 3),
    App("postgres", "tests/apps/postgres", "Node.js", "shared_dependency", 4),
    App("sqlite", "tests/apps/sqlite", "Python", "cpu_bound", 4),
    App("quota", "tests/apps/quota", "Python", "cpu_throttled", 4),
    App("lock", "tests/apps/lock", "Java", "serialized", 5),
    App("leak", "tests/apps/leak", "Node.js", "memory_pressure", 3),
    App("uneven", "tests/apps/uneven", "Python", "serialized", 5),
    App("workers", "tests/apps/workers", "Python", "waiting", 5),
)
