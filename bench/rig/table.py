"""Tables: one set of values as text for the terminal and as Markdown for the documentation."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

WIDTH = 100


@dataclass(frozen=True)
class Table:
    title: str
    head: list[str]
    rows: list[list[str]]
    # What has to be known to read it.
    note: str = ""


@dataclass(frozen=True)
class Sheet:
    """All that a benchmark has to say."""

    # How was measured, a sentence or more.
    conditions: str
    tables: list[Table]
    # What was left out, a sentence each.
    skipped: list[str]

    def text(self) -> str:
        parts = [textwrap.fill(self.conditions, WIDTH)]
        for table in self.tables:
            widths = [max(map(len, column)) for column in zip(table.head, *table.rows, strict=True)]
            lines = [_aligned(row, widths) for row in [table.head, *table.rows]]
            note = ["", textwrap.fill(table.note, WIDTH)] if table.note else []
            parts.append("\n".join([table.title, "", *lines, *note]))
        return "\n\n".join([*parts, *self.skipped])

    def markdown(self) -> str:
        parts = [self.conditions]
        for table in self.tables:
            rule = ["---", *["---:"] * (len(table.head) - 1)]
            lines = ["| " + " | ".join(row) + " |" for row in [table.head, rule, *table.rows]]
            parts += [f"### {table.title}", "\n".join(lines), *_present(table.note)]
        if self.skipped:
            parts.append("\n".join(["Left out:", "", *(f"- {each}" for each in self.skipped)]))
        return "\n\n".join(parts)

    def put(self, docs: Path, benchmark: str) -> None:
        """Replaces what is between the benchmark's marks."""
        begin = f"<!-- {benchmark} begins: written by `make bench-docs`, not by hand -->"
        end = f"<!-- {benchmark} ends -->"
        before, found, rest = docs.read_text().partition(begin)
        _, ended, after = rest.partition(end)
        if not (found and ended):
            raise ValueError(f"{docs} has lost its marks; restore {begin!r} and {end!r}")
        docs.write_text(f"{before}{begin}\n\n{self.markdown()}\n\n{end}{after}")


def milliseconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _present(note: str) -> Iterable[str]:
    return [note] if note else []


def _aligned(row: list[str], widths: list[int]) -> str:
    first, *rest = row
    cells = [first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(rest, widths[1:], strict=True))]
    return "  ".join(cells).rstrip()
