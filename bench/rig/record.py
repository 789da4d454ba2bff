"""What a run has measured, kept as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from rig.program import now
from rig.table import Sheet


class Results(Protocol):
    """A dataclass of a run."""

    finished_at: str
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


R = TypeVar("R", bound=Results)


def write(path: Path, results: Results) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(results), indent=1) + "\n")


def finish(path: Path, results: R, render: Callable[[R], Sheet]) -> Sheet:
    """The run is over: kept, and its tables beside it as text."""
    results.finished_at = now()
    write(path, results)
    sheet = render(results)
    path.with_suffix(".txt").write_text(sheet.text())
    return sheet


def read(path: Path, schema: str) -> dict[str, Any]:
    document = json.loads(path.read_text())
    if document["schema"] != schema:
        raise ValueError(f"{path} has the schema {document['schema']}; measure again")
    return document


def read_trials(path: Path, schema: str, results: Callable[..., R], trial: Callable[[Any], Any]) -> R:
    """The results of a run that has a trial for each app by its name."""
    document = read(path, schema)
    trials = document.pop("trials")
    return results(trials={name: trial(each) for name, each in trials.items()}, **document)
