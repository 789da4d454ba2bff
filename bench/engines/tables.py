"""The tables of the results: each row of a case as processes, and as it was published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from results import Outcome, Results, Trial
from setups import SYSTEMS, System
from systems import sizes
from systems.cases import Case

from rig import machine, published
from rig.table import Sheet, Table, milliseconds

JSON = "engines.json"
# What an engine adds: a share of the CPU, and proxies on the way.
OF_ENGINES = ("cpu_throttled", "connection_limited")

Document = dict[str, Any]


def sheet(results: Results) -> Sheet:
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    conditions = machine.sentence(results.machine, results.started_at, results.finished_at) + f"{versions}."
    known = [system for system in SYSTEMS if system.title in results.outcomes]
    tables = [_system(system, results.outcomes[system.title]) for system in known]
    for setup, document in results.sizes.items():
        tables.append(sizes.table(document, f"3. Bigger or more: {setup}"))
    return Sheet(conditions, sorted(tables, key=lambda table: table.title), [])


def _system(system: System, outcome: Outcome) -> Table:
    case = system.case.at(outcome.rate)
    head = ["", "published", "measured here", "x published", "measured"]
    head += ["ready after, s", "CPU a request, ms", "x processes", "conclusion"]
    rows: list[list[str]] = []
    for setup, trials in outcome.trials.items():
        rows += _rows(system, outcome, setup)
        rows.append(_answer(case, setup, outcome.plans[setup]))
    note = (
        "Times are p50 and p95. Multiples (x) are of the first row's requests/s in the same setup. The CPU is that of "
        "all but the generator: the app, its database, Tenfold, nginx, and what the engine runs."
    )
    return Table(system.title, head, rows, note)


def _rows(system: System, outcome: Outcome, setup: str) -> Iterator[list[str]]:
    trials, processes = outcome.trials[setup], next(iter(outcome.trials.values()))
    for row, trial, process in zip(system.rows, trials, processes, strict=True):
        measured = published.multiple(trial.load, trials[0].load)
        workload = published.of_workload(system.workload(row, outcome.rate))
        yield [
            f"{setup}: {row.instances} x, {workload}",
            row.published,
            published.figures(trial.load["throughput"], trial.load["response_ms"]),
            f"{row.shape:g}",
            f"{measured:.2f}",
            f"{trial.start_ms / 1e3:.1f}",
            milliseconds(trial.cpu_us / 1e3),
            _over(trial, process),
            published.conclusion(row.least, measured, None, row.most),
        ]


def _over(trial: Trial, process: Trial) -> str:
    return "" if trial is process else f"{trial.cpu_us / process.cpu_us:.2f}"


def _answer(case: Case, setup: str, plan: Document) -> list[str]:
    wanted = case.answer
    said, same = published.answer(plan, wanted.finding, wanted.least, wanted.most, OF_ENGINES)
    workload = published.of_workload(wanted.workload)
    return [f"{setup}: the plan, {workload}", wanted.published, said, "", "", "", "", "", same]
