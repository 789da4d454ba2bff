"""What is asked for, from the environment, as `make bench-load WORKS=small ROUNDS=3` sets it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
DOCS = ROOT / "docs" / "benchmarks.md"

Environment = Mapping[str, str]


class Misuse(Exception):
    """An option that cannot be used; the text says which, and what can be."""


def works(environment: Environment, known: Sequence[str], setting: str = "WORKS") -> list[str]:
    """Those that the setting names, or all."""
    names = environment.get(setting, "").split()
    for name in names:
        if name not in known:
            every = ", ".join(known)
            raise Misuse(f"{setting} has {name!r}; use some of {every}, with blanks between them")
    return names or list(known)


def number(environment: Environment, name: str, default: float) -> float:
    text = environment.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 1_000_000:
        raise Misuse(f"{name}={text} is no number from 1 to 1000000")
    return value


def results(environment: Environment) -> Path:
    """The directory that results go to."""
    return Path(environment.get("RESULTS", RESULTS))


def programs(environment: Environment, names: Sequence[str], word: str) -> dict[str, Path]:
    """The Makefile says where it has built them; `word` is what it is run as."""
    found = {}
    for name in names:
        path = Path(environment.get(name, ""))
        if not path.is_file():
            raise Misuse(f"{name}={path} is no program; run this as `make {word}`")
        found[name.lower()] = path.resolve()
    # Servers live in sbin, which is not in everybody's path.
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    return found
