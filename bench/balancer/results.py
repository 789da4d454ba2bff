"""What was measured, as values that are written to a file and rendered from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from central_queue import Quantiles

from rig import record

SCHEMA = "tenfold/bench-balancer/2"


@dataclass(frozen=True)
class Measure:
    """One proxy under one work for one window."""

    requests: int
    errors: int
    # Requests a second.
    rate: float
    # CPU of the proxy, microseconds a request.
    cpu_us: float
    # The share of it that is system time.
    system_share: float
    # Cores in use during the window.
    proxy_cores: float
    origin_cores: float
    generator_cores: float
    # Cores that processes outside the benchmark used, or the hypervisor took.
    noise_cores: float
    disturbed: bool
    # Of the access log, as far as they have been written by the end of the window.
    log_lines: int | None
    # Bytes, while the work was going on.
    rss: int
    pss: int
    # From the intended send time; of works at a fixed rate only.
    p50_ms: float | None = None
    p99_ms: float | None = None


@dataclass(frozen=True)
class Latency:
    """One proxy at a fixed rate; milliseconds from the intended send time."""

    rate: float
    errors: int
    p50_ms: float | None
    p99_ms: float | None
    # The generator's own: valid, suspect or invalid.
    verdict: str | None
    disturbed: bool


@dataclass
class WorkResults:
    """By proxy, a value a round; the n-th values of all proxies are of the same round."""

    measures: dict[str, list[Measure]] = field(default_factory=dict)
    latencies: dict[str, list[Latency]] = field(default_factory=dict)


@dataclass(frozen=True)
class TailRun:
    """One balancer for one minute; milliseconds from the intended send time."""

    errors: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    # What an ideal central queue makes of the same arrivals and the same service times.
    ideal: Quantiles
    verdict: str | None
    disturbed: bool

    def __str__(self) -> str:
        said = "  ".join(str(each) for each in (self.p50_ms, self.p95_ms, self.p99_ms, self.p999_ms))
        text = f"{said}  ideal p99 {self.ideal.p99:.1f}  {self.errors} errors  {self.verdict}"
        return text + ("  disturbed" if self.disturbed else "")


@dataclass(frozen=True)
class Idle:
    """Bytes of a proxy before and with its idle client connections."""

    connections: int
    rss_before: int
    rss: int
    pss_before: int
    pss: int


@dataclass
class Results:
    started_at: str
    machine: dict[str, Any]
    versions: dict[str, str]
    # Which cores the proxy had, and which everything else.
    proxy_core: int
    other_cores: list[int]
    seed: int
    rounds: int
    window_s: float
    tail_s: float
    finished_at: str = ""
    # By access log (off, on), then by work.
    works: dict[str, dict[str, WorkResults]] = field(default_factory=dict)
    # By balancer and policy.
    tail: dict[str, list[TailRun]] = field(default_factory=dict)
    # By proxy.
    idle: dict[str, Idle] = field(default_factory=dict)
    # What was left out, a sentence each.
    skipped: list[str] = field(default_factory=list)
    schema: str = SCHEMA


def read(path: Path) -> Results:
    document = record.read(path, SCHEMA)
    document["works"] = {
        log: {name: _work(work) for name, work in works.items()}
        for log, works in document["works"].items()
    }
    document["tail"] = {
        name: [_tail_run(run) for run in runs] for name, runs in document["tail"].items()
    }
    document["idle"] = {name: Idle(**idle) for name, idle in document["idle"].items()}
    return Results(**document)


def cpu(work: WorkResults, proxy: str) -> list[float]:
    return [measure.cpu_us for measure in work.measures[proxy]]


def best(work: WorkResults, among: tuple[str, ...]) -> str:
    """The one of these proxies that needs the least CPU a request."""
    return min(among, key=lambda proxy: median(cpu(work, proxy)))


def _tail_run(document: dict[str, Any]) -> TailRun:
    return TailRun(ideal=Quantiles(**document.pop("ideal")), **document)


def _work(document: dict[str, Any]) -> WorkResults:
    return WorkResults(
        {name: [Measure(**m) for m in all_of] for name, all_of in document["measures"].items()},
        {name: [Latency(**m) for m in all_of] for name, all_of in document["latencies"].items()},
    )
