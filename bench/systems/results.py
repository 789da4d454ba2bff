"""What was measured, as values that are written to a file and rendered from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig import record

SCHEMA = "tenfold/bench-systems/1"


@dataclass
class Outcome:
    """A case: Tenfold's own documents, whole."""

    # By workload, as its arguments in one line.
    plans: dict[str, dict[str, Any]]
    # A document a row.
    loads: list[dict[str, Any]]
    # How many of both were taken again.
    taken_again: int = 0
    # Arrivals a second, where they follow what one instance answers.
    rate: float | None = None


@dataclass
class Results:
    started_at: str
    machine: dict[str, Any]
    finished_at: str = ""
    # By case.
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    # Of `tenfold cost`, for the system that is about sizes.
    sizes: dict[str, Any] | None = None
    # What was left out, a sentence each.
    skipped: list[str] = field(default_factory=list)
    schema: str = SCHEMA


def key(workload: tuple[str, ...]) -> str:
    return " ".join(workload)


def read(path: Path) -> Results:
    document = record.read(path, SCHEMA)
    outcomes = document.pop("outcomes")
    return Results(outcomes={name: Outcome(**each) for name, each in outcomes.items()}, **document)
