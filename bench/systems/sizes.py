"""System 3, bigger or more: rows are sizes and counts, and `tenfold cost` has the conclusion."""

from __future__ import annotations

import subprocess
from typing import Any

from rig.options import ROOT
from rig.published import DIFFERENT
from rig.table import Table
from rig.tenfold import Tenfold

NAME = "static-cost"
FOLDER = ROOT / "examples" / "static-cost"
TITLE = "3. Cost and performance: bigger or more?"
PATIENCE_S = 400
SIZES = [
    *("--cpus", "0.1,0.3,0.5,0.7,1", "--memory", "2M,6M,10M,14M,20M", "--instances", "1,3,5,7,10"),
    *("--longest", "8s"),
]
# What `tenfold cost` may advise, and what that says of the published conclusion, which is more.
HOLDS = {"more": "same", "either": "as good, not better"}
# Requests/s and a month's price, as published: by cores of one instance, and by instances of 0.1 cores.
VERTICAL = {
    0.1: (154.8, 0.51),
    0.3: (196.4, 2.02),
    0.5: (254.3, 3.36),
    0.7: (277.9, 4.72),
    1.0: (338.2, 6.81),
}
HORIZONTAL = {
    1: (154.8, 0.51),
    3: (212.4, 1.53),
    5: (284.3, 2.55),
    7: (311.9, 3.57),
    10: (437.2, 5.10),
}

Document = dict[str, Any]


def measure(tenfold: Tenfold, takes: int) -> Document:
    """Taken again while it says something else than published and Tenfold does not stand for it."""
    subprocess.run(["cc", "-O2", "-static", "-o", "static", "static.c"], cwd=FOLDER, check=True)
    config = ["--config", str(FOLDER / "tenfold.toml"), "--quiet"]
    for _ in range(takes):
        document = tenfold.document("cost", [*config, *SIZES], PATIENCE_S)
        if document["verdict"] == "valid" or (document["advice"] or {}).get("growth") in HOLDS:
            break
    return document


def table(document: Document, title: str = TITLE) -> Table:
    rows = [
        *_line(document["vertical"], "cpus", VERTICAL, "1 x, {:g} cores"),
        *_line(document["horizontal"], "instances", HORIZONTAL, "{} x, 0.1 cores"),
    ]
    advice = document["advice"]
    conclusion = HOLDS.get(advice["growth"], DIFFERENT) if advice else DIFFERENT
    growth = advice["growth"] if advice else "no answer"
    rows.append(["bigger or more", "more", growth, "", "", conclusion])
    head = ["", "published", "measured here", "x published", "measured", "conclusion"]
    note = (
        "Requests/s and the price of a month: theirs, and by the catalogue used here. Multiples (x) are of the first "
        "row's requests/s. `tenfold cost` measures every row, so that nothing is predicted. It says: "
        f"{advice['reason'] if advice else 'nothing, for rows are missing'}"
    )
    return Table(title, head, rows, note)


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

