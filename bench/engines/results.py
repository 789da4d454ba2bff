"""What was measured, as values that are written to a file and rendered from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig import record

SCHEMA = "tenfold/bench-engines/1"

Document = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """A row of a case in one setup."""

    # From the start of `tenfold up` until all instances serve.
    start_ms: float
    # CPU of all but the generator, microseconds a request.
    cpu_us: float
    # Of `tenfold load`.
    load: Document


@dataclass(frozen=True)
class Outcome:
    # Trials by setup, each with one a row.
    trials: dict[str, list[Trial]]
    # Of `tenfold plan`, by setup.
    plans: dict[str, Document]
    # Arrivals a second, where they follow what one instance answers.
    rate: float | None


@dataclass
class Results:
    started_at: str
    machine: dict[str, Any]
    versions: dict[str, str]
    finished_at: str = ""
    # By the title of the system.
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    # Of `tenfold cost`, by setup.
    sizes: dict[str, Document] = field(default_factory=dict)
    schema: str = SCHEMA


def read(path: Path) -> Results:
    document = record.read(path, SCHEMA)
    outcomes = {title: _outcome(each) for title, each in document.pop("outcomes").items()}
    return Results(outcomes=outcomes, **document)


def _outcome(document: Document) -> Outcome:
    trials = document.pop("trials")
    return Outcome(
        trials={setup: [Trial(**each) for each in rows] for setup, rows in trials.items()}, **document
    )
