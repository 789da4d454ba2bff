"""`make systems`: five published systems, measured and predicted here."""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import results as recorded
import sizes
import tables
from cases import CASES, Case, Row
from results import Outcome, Results

from rig import machine, options, record
from rig.child import Child, free_ports
from rig.options import ROOT
from rig.program import OtherThanPublished, main, now
from rig.table import Sheet
from rig.tenfold import Tenfold

DOCS = ROOT / "docs" / "systems.md"
PATIENCE_S = 150
READY_S = 60


def measure() -> Sheet:
    names = options.works(os.environ, [sizes.NAME, *(case.name for case in CASES)], "SYSTEMS")
    program = options.programs(os.environ, ("TENFOLD",), "systems")["tenfold"]
    directory = options.results(os.environ)
    results = Results(started_at=now(), machine=dataclasses.asdict(machine.describe()))
    with Tenfold(program) as tenfold:
        for case in (case for case in CASES if case.name in names):
            results.outcomes[case.name] = _outcome(tenfold, program, case)
            # What was measured is kept, whatever comes.
            record.write(directory / tables.JSON, results)
            print(f"bench: {now()} {case.name} is done", file=sys.stderr)
        if sizes.NAME in names:
            results.sizes = sizes.measure(tenfold)
    sheet = record.finish(directory / tables.JSON, results, tables.sheet)
    if differences := tables.differences(results):
        print(sheet.text())
        raise OtherThanPublished("\n".join(["conclusions other than published:", *differences]))
    return sheet


def render(path: Path) -> Sheet:
    return tables.sheet(recorded.read(path))


def _outcome(tenfold: Tenfold, program: Path, case: Case) -> Outcome:
    plans = {}
    for workload in dict.fromkeys([*(row.workload for row in case.rows), case.answer.workload]):
        arguments = [*_config(case), *case.request, *case.app, *workload]
        arguments += ["--quiet", "--path", case.path]
        plans[recorded.key(workload)] = tenfold.document("plan", arguments, PATIENCE_S)
    return Outcome(plans, [_row(tenfold, program, case, row) for row in case.rows])


def _row(tenfold: Tenfold, program: Path, case: Case, row: Row) -> dict[str, object]:
    with _serving(program, case, row.instances) as url:
        arguments = [url + case.path, "--quiet", *case.request, *case.load, *row.workload]
        return tenfold.document("load", arguments, PATIENCE_S)


@contextmanager
def _serving(program: Path, case: Case, instances: int) -> Iterator[str]:
    """The instances behind the balancer, as people run them."""
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-") as directory:
        (port,) = free_ports(1)
        command = [str(program), "up", "-n", str(instances), "--listen", f"127.0.0.1:{port}"]
        up = Child(
            "tenfold up",
            [*command, *_config(case), *case.app],
            sorted(os.sched_getaffinity(0)),
            Path(directory) / "said",
            {"TENFOLD_STATE_DIR": directory},
        )
        try:
            url = f"http://127.0.0.1:{port}"
            # The port opens before; this is said when every instance is ready.
            up.await_saying(f"behind {url}", READY_S)
            yield url
        finally:
            up.stop()


def _config(case: Case) -> list[str]:
    return ["--config", str(ROOT / case.folder / "tenfold.toml")]


if __name__ == "__main__":
    sys.exit(main("systems", measure, tables.JSON, render, DOCS))
