"""System 3, bigger or more: rows are sizes and counts, and `tenfold cost` has the conclusion."""

from __future__ import annotations

import runpy
import subprocess
from typing import Any

from rig.options import ROOT
from rig.table import Table
from rig.tenfold import Tenfold

NAME = "static-cost"
FOLDER = ROOT / "examples" / "static-cost"
TITLE = "3. Cost and performance: bigger or more?"
PATIENCE_S = 400

Document = dict[str, Any]


def measure(tenfold: Tenfold) -> Document:
    subprocess.run(["cc", "-O2", "-static", "-o", "static", "static.c"], cwd=FOLDER, check=True)
    config = ["--config", str(FOLDER / "tenfold.toml"), "--quiet"]
    return tenfold.document("cost", [*config, *_check()["SIZES"]], PATIENCE_S)


def table(document: Document, different: str) -> Table:
    published = _check()
    rows = [
        *_line(document["vertical"], "cpus", published["VERTICAL"], "1 x, {:g} cores"),
        *_line(document["horizontal"], "instances", published["HORIZONTAL"], "{} x, 0.1 cores"),
    ]
    advice = document["advice"]
    conclusion = published["HOLDS"].get(advice["growth"], different) if advice else different
    growth = advice["growth"] if advice else "no answer"
    rows.append(["bigger or more", "more", growth, "", "", conclusion])
    head = ["", "published", "measured here", "x published", "measured", "conclusion"]
    note = (
        "Requests/s and the price of a month: theirs, and by the catalogue used here. Multiples (x) are of the first "
        "row's requests/s. `tenfold cost` measures every row, so that nothing is predicted. It says: "
        f"{advice['reason'] if advice else 'nothing, for rows are missing'}"
    )
    return Table(TITLE, head, rows, note)


def _line(
    measured: list[Document], key: str, published: dict[float, tuple[float, float]], words: str
) -> list[list[str]]:
    rows = []
    first, _ = next(iter(published.values()))
    here = [(each["measured"] or {}).get("throughput") or 0.0 for each in measured]
    for row, throughput in zip(measured, here, strict=True):
        theirs, month = published[row[key]]
        rows.append(
            [
                words.format(row[key]),
                f"{theirs:.0f}/s, {month:.2f}",
                f"{throughput:.0f}/s, {row['month']:.2f}" if throughput else row["failure"] or "failed",
                f"{theirs / first:.2f}",
                f"{throughput / here[0]:.2f}" if here[0] else "-",
                "",
            ]
        )
    return rows


def _check() -> dict[str, Any]:
    """What the example's own check knows: the sizes, and what was published of them."""
    return runpy.run_path(str(FOLDER / "check"))
