"""What was measured, as values that are written to a file and rendered from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig import record

SCHEMA = "tenfold/bench-page/1"


@dataclass(frozen=True)
class Server:
    """Tenfold with some readers of its events, for one window."""

    # Who reads: "no live page" leaves --admin out.
    readers: str
    cores: float
    # Of each reader's stream, a second.
    bytes_per_s: float
    disturbed: bool


@dataclass(frozen=True)
class Tab:
    """The page in a browser, for one window."""

    view: str
    # From the request to the first chart.
    painted_ms: float
    # Of the page's own process: scripts, layout, painting.
    cores: float
    # 0 where none took 50 ms.
    longest_task_ms: float
    bytes_per_s: float
    # All that it loads before.
    first_bytes: int
    dom_nodes: int
    heap_bytes: int


@dataclass(frozen=True)
class Plan:
    """One plan."""

    page: str
    answer: int | None
    # The answers that the model allows.
    low: int | None
    high: int | None
    verdict: str
    # What the predicted throughput of one instance may be, its width over its middle.
    width: float | None


@dataclass
class Results:
    started_at: str
    machine: dict[str, Any]
    versions: dict[str, str]
    instances: int
    rate: float
    window_s: float
    # Whether Tenfold was built with optimisation.
    optimised: bool
    # Processes that wanted a core in the minute before the beginning.
    load_average: float
    finished_at: str = ""
    memory_bytes: dict[str, int] = field(default_factory=dict)
    servers: list[Server] = field(default_factory=list)
    tabs: list[Tab] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    schema: str = SCHEMA


def read(path: Path) -> Results:
    document = record.read(path, SCHEMA)
    servers = [Server(**each) for each in document.pop("servers")]
    tabs = [Tab(**each) for each in document.pop("tabs")]
    plans = [Plan(**each) for each in document.pop("plans")]
    return Results(servers=servers, tabs=tabs, plans=plans, **document)
