"""`make systems`: five published systems, measured and predicted here."""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import results as recorded
import sizes
import tables
from cases import CASES, Case, Row, users
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
# How often a measurement is taken that Tenfold itself calls suspect and that says something else.
TAKES = 3


def measure() -> Sheet:
    names = options.works(os.environ, [sizes.NAME, *(case.name for case in CASES)], "SYSTEMS")
    program = options.programs(os.environ, ("TENFOLD",), "systems")["tenfold"]
    directory = options.results(os.environ)
    results = _begun(directory / tables.JSON, names)
    with Tenfold(program) as tenfold:
        for case in (case for case in CASES if case.name in names):
            results.outcomes[case.name] = _outcome(tenfold, program, case)
            _keep(directory / tables.JSON, results, case.name)
        if sizes.NAME in names:
            results.sizes = sizes.measure(tenfold, TAKES)
            _keep(directory / tables.JSON, results, sizes.NAME)
    sheet = record.finish(directory / tables.JSON, results, tables.sheet)
    if differences := tables.differences(results):
        print(sheet.text())
        raise OtherThanPublished("\n".join(["conclusions other than published:", *differences]))
    return sheet


def render(path: Path) -> Sheet:
    return tables.sheet(recorded.read(path))


def _begun(path: Path, names: list[str]) -> Results:
    """Nothing yet; where only some systems are asked for, what this machine has measured of the others."""
    results = Results(started_at=now(), machine=dataclasses.asdict(machine.describe()))
    if len(names) <= len(CASES) and path.is_file():
        earlier = recorded.read(path)
        if earlier.machine == results.machine:
            earlier.finished_at = ""
            return earlier
    return results


def _keep(path: Path, results: Results, name: str) -> None:
    """What was measured stays, whatever comes."""
    record.write(path, results)
    print(f"bench: {now()} {name} is done", file=sys.stderr)


def _outcome(tenfold: Tenfold, program: Path, named: Case) -> Outcome:
    rate = _rate(tenfold, program, named)
    case = named.at(rate)
    workloads = dict.fromkeys([*(row.workload for row in case.rows), case.answer.workload])
    plans = {recorded.key(workload): _plan(tenfold, case, workload) for workload in workloads}
    outcome = Outcome(plans, [_row(tenfold, program, case, row) for row in case.rows], rate=rate)
    for _ in range(TAKES - 1):
        doubtful = tables.doubtful(case, outcome)
        outcome.taken_again += len(doubtful.workloads) + len(doubtful.rows)
        for workload in doubtful.workloads:
            outcome.plans[recorded.key(workload)] = _plan(tenfold, case, workload)
        for index in doubtful.rows:
            outcome.loads[index] = _row(tenfold, program, case, case.rows[index])
    return outcome


def _rate(tenfold: Tenfold, program: Path, case: Case) -> float | None:
    """Arrivals a second, where they are a multiple of what one instance answers."""
    if case.overload is None:
        return None
    alone = Row(1, users(1), "", 1, 1, 1)
    return round(case.overload * float(_row(tenfold, program, case, alone)["throughput"]), 1)


def _plan(tenfold: Tenfold, case: Case, workload: tuple[str, ...]) -> dict[str, Any]:
    arguments = [*_config(case), *case.request, *case.app, *workload, "--quiet", "--path", case.path]
    if workload != case.answer.workload:
        # Only its rows ask for it.
        most = max(row.instances for row in case.rows if row.workload == workload)
        arguments += ["--max-instances", str(most)]
    return tenfold.document("plan", arguments, PATIENCE_S)


def _row(tenfold: Tenfold, program: Path, case: Case, row: Row) -> dict[str, Any]:
    with _serving(program, case, row.instances) as url:
        arguments = [url + case.path, "--quiet", *case.request, *row.workload]
        if case.warm_up:
            tenfold.document("load", [*arguments, "--duration", case.warm_up], PATIENCE_S)
        return tenfold.document("load", [*arguments, *case.load], PATIENCE_S)


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
