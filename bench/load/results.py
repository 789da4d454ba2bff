"""What was measured, as values that are written to a file and rendered from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig import record

SCHEMA = "tenfold/bench-load/2"


@dataclass(frozen=True)
class Measure:
    """One generator at one work for one window."""

    # As the server has counted them, in all and a second.
    requests: int
    rate: float
    # CPU of the generator, microseconds a request.
    cpu_us: float
    # Cores in use during the window.
    generator_cores: float
    server_cores: float
    # Open at its end.
    connections: int
    # Bytes of the generator.
    rss: int
    # Cores that processes outside the benchmark used, or the hypervisor took.
    noise_cores: float
    disturbed: bool

    def __str__(self) -> str:
        text = f"{self.cpu_us:8.2f} us  {self.rate:9.0f}/s  generator {self.generator_cores:.2f}"
        text += f"  server {self.server_cores:.2f}  noise {self.noise_cores:.2f}"
        text += f"  {self.connections} connections"
        return text + ("  disturbed" if self.disturbed else "")


@dataclass(frozen=True)
class Quantiles:
    """Response times in milliseconds."""

    p50: float | None
    p90: float | None
    p99: float | None
    p999: float | None

    def each(self) -> list[float | None]:
        return [self.p50, self.p90, self.p99, self.p999]


@dataclass(frozen=True)
class TruthRun:
    """One generator at a server whose response times are known."""

    # Requests a second that were answered.
    rate: float
    said: Quantiles
    # What follows from what the server has written down of the same requests.
    true: Quantiles
    # How late requests went out, by its own words and as the server has seen them come; of Tenfold
    # only.
    lag_p99_ms: float | None
    seen_lag_p99_ms: float | None
    verdict: str | None
    disturbed: bool

    def __str__(self) -> str:
        pairs = zip(self.said.each(), self.true.each(), strict=True)
        text = "  ".join(f"{said} ({true})" for said, true in pairs)
        text += f"  {self.rate:.0f}/s  lag {self.lag_p99_ms} ({self.seen_lag_p99_ms})  {self.verdict}"
        return text + ("  disturbed" if self.disturbed else "")


@dataclass(frozen=True)
class Footprint:
    """Bytes of a generator with so many connections open."""

    connections: int
    rss: int


@dataclass
class Results:
    started_at: str
    machine: dict[str, Any]
    versions: dict[str, str]
    # Which cores the generator had, and which everything else.
    generator_core: int
    other_cores: list[int]
    seed: int
    rounds: int
    window_s: float
    truth_s: float
    finished_at: str = ""
    # By work, then by generator, a value a round; the n-th values are of the same round.
    works: dict[str, dict[str, list[Measure]]] = field(default_factory=dict)
    # By pattern, then by generator.
    truth: dict[str, dict[str, list[TruthRun]]] = field(default_factory=dict)
    # By generator.
    memory: dict[str, Footprint] = field(default_factory=dict)
    # What was left out, a sentence each.
    skipped: list[str] = field(default_factory=list)
    schema: str = SCHEMA


def read(path: Path) -> Results:
    document = record.read(path, SCHEMA)
    document["works"] = {
        work: {name: [Measure(**each) for each in all_of] for name, all_of in by_name.items()}
        for work, by_name in document["works"].items()
    }
    document["truth"] = {
        pattern: {name: [_truth(each) for each in all_of] for name, all_of in by_name.items()}
        for pattern, by_name in document["truth"].items()
    }
    document["memory"] = {name: Footprint(**each) for name, each in document["memory"].items()}
    return Results(**document)


def cpu(measures: list[Measure]) -> list[float]:
    return [measure.cpu_us for measure in measures]


def _truth(document: dict[str, Any]) -> TruthRun:
    said, true = Quantiles(**document.pop("said")), Quantiles(**document.pop("true"))
    return TruthRun(said=said, true=true, **document)
