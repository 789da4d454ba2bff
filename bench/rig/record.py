"""What a run has measured, kept as JSON."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def write(path: Path, results: DataclassInstance) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(results), indent=1) + "\n")


def read(path: Path, schema: str) -> dict[str, Any]:
    document = json.loads(path.read_text())
    if document["schema"] != schema:
        raise ValueError(f"{path} has the schema {document['schema']}; measure again")
    return document
