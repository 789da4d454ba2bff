"""The tables of the results, and whether every conclusion is the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import results as recorded
import sizes
from cases import CASES, Case, Row
from results import Outcome, Results

from rig import machine, published
from rig.published import DIFFERENT
from rig.table import Sheet, Table

JSON = "systems.json"

Document = dict[str, Any]


@dataclass(frozen=True)
class Doubtful:
    """Measurements that Tenfold does not stand for."""

    workloads: list[tuple[str, ...]]
    # By index.
    rows: list[int]


def sheet(results: Results) -> Sheet:
    conditions = machine.sentence(results.machine, results.started_at, results.finished_at)
    return Sheet(conditions, _tables(results), results.skipped)


def differences(results: Results) -> list[str]:
    """Conclusions that are not the published ones, a sentence each."""
    return [
        f"{table.title}: {row[0]}"
        for table in _tables(results)
        for row in table.rows
        if DIFFERENT in row[-1]
    ]


def doubtful(case: Case, outcome: Outcome) -> Doubtful:
    """What is suspect behind a conclusion other than published."""
    concluded = enumerate(_rows(case, outcome))
    different = [index for index, row in concluded if DIFFERENT in row[-1]]
    # Multiples are of the first row's.
    rows = sorted({0, *different}) if different else []
    workloads = [case.rows[index].workload for index in rows]
    if DIFFERENT in _answer(case, outcome)[-1]:
        workloads.append(case.answer.workload)
    return Doubtful(
        [each for each in dict.fromkeys(workloads) if _is_suspect(outcome.plans[recorded.key(each)])],
        [index for index in rows if _is_suspect(outcome.loads[index])],
    )


def _is_suspect(document: Document) -> bool:
    return bool(document["verdict"] != "valid")


def _tables(results: Results) -> list[Table]:
    known = [case for case in CASES if case.name in results.outcomes]
    outcomes = [(case, results.outcomes[case.name]) for case in known]
    tables = [_case(case.at(outcome.rate), outcome) for case, outcome in outcomes]
    if results.sizes:
        tables.append(sizes.table(results.sizes))
    return sorted(tables, key=lambda table: table.title)


def _case(case: Case, outcome: Outcome) -> Table:
    rows = [*_rows(case, outcome), _answer(case, outcome)]
    head = ["", "published", "measured here", "predicted here", "x published", "measured", "predicted"]
    note = "Times are p50 and p95. Multiples (x) are of the first row's requests/s."
    if outcome.taken_again:
        note += f" Taken again, as Tenfold called them suspect: {outcome.taken_again} measurements."
    return Table(case.title, [*head, "conclusion"], rows, note)


def _rows(case: Case, outcome: Outcome) -> Iterator[list[str]]:
    first_load, first_plan = outcome.loads[0], _predicted(case.rows[0], outcome)
    for row, load in zip(case.rows, outcome.loads, strict=True):
        plan = _predicted(row, outcome)
        measured = published.multiple(load, first_load)
        predicted = published.multiple(plan, first_plan) if plan and first_plan else None
        yield [
            f"{row.instances} x, {published.of_workload(row.workload)}",
            row.published,
            published.figures(load["throughput"], load["response_ms"]),
            published.figures(plan["throughput"], _times(plan)) if plan else "-",
            f"{row.shape:g}",
            f"{measured:.2f}",
            "-" if predicted is None else f"{predicted:.2f}",
            published.conclusion(row.least, measured, predicted, row.most),
        ]


def _answer(case: Case, outcome: Outcome) -> list[str]:
    wanted = case.answer
    plan = outcome.plans[recorded.key(wanted.workload)]
    said, same = published.answer(plan, wanted.finding, wanted.least, wanted.most)
    return [f"the plan, {published.of_workload(wanted.workload)}", wanted.published, "", said, "", "", "", same]


def _predicted(row: Row, outcome: Outcome) -> Document | None:
    """None beyond the counts that the plan looked at."""
    curve = outcome.plans[recorded.key(row.workload)]["curve"]
    points = (point["predicted"] for point in curve if point["instances"] == row.instances)
    return next(points, None)


def _times(predicted: Document) -> Document:
    return {"p50": predicted["p50_ms"], "p95": predicted["p95_ms"]}
