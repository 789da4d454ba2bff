"""The tables of the results."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import contradictions
from apps import APPS
from judgement import AGREED, MOST_THROUGHPUT, Judged, Point
from results import Results

from rig import machine
from rig.plan import disturbances
from rig.ratio import verdict
from rig.table import Sheet, Table, milliseconds

JSON = "foreign.json"
MEDIAN_PLAN_S = 30


def sheet(results: Results) -> Sheet:
    judged = [
        Judged.of(app, results.trials[app.name], int(results.machine["cores"]))
        for app in APPS
        if app.name in results.trials
    ]
    return Sheet(conditions(results), list(tables(judged, results)), list(results.failed.values()))


def conditions(results: Results) -> str:
    return (
        machine.sentence(results.machine, results.started_at, results.finished_at)
        + "The truth is the median of two sweeps by another generator, behind a balancer with the slots that the plan names. "
        "Each count "
        f"is measured for {results.sweep_s:g} s, or longer if requests are few. The plan starts from scratch with a "
        f"budget of {results.budget_s:g} s."
    )


def tables(judged: list[Judged], results: Results) -> Iterator[Table]:
    if judged:
        yield _requirements(judged, results)
        yield _apps(judged)
        yield from _contradictions(judged)
        yield _counts(judged)


def _requirements(judged: list[Judged], results: Results) -> Table:
    points = [point for each in judged for point in each.points]
    known = [point for point in points if point.is_known]
    with_p95 = [point for point in points if point.p95_off_ms is not None]
    p95_known = [point for point in with_p95 if point.p95_is_known]
    valid = [each for each in judged if each.verdict == "valid"]
    plans_s = [each.plan_s for each in judged]
    expected = sum(each.app.most for each in judged)
    rows = [
        _all("apps that were planned and swept", len(judged), len(judged) + len(results.failed)),
        _all("counts right, or one off and the interval says so", sum(e.is_right for e in judged), len(judged)),
        _all("counts that the plan predicts", len(points), expected),
        _all(
            f"throughput within {MOST_THROUGHPUT:.0%}, where the truth is known within {AGREED:.0%}",
            sum(not point.throughput_is_missed for point in known),
            len(known),
        ),
        ["the same, worst, of all counts", _worst(points), "", ""],
        _all(
            "p95 within 25 %, or 2 ms up to 5 ms",
            sum((point.p95_used or 0) <= 1 for point in with_p95),
            len(with_p95),
        ),
        _all(
            "the same, where the two sweeps agree as well",
            sum(not point.p95_is_missed for point in p95_known),
            len(p95_known),
        ),
        _all(
            "plans that do not contradict themselves",
            sum(not contradictions.of(each.trial.plan) for each in judged),
            len(judged),
        ),
        _all("first findings that are right", sum(e.is_found for e in judged), len(judged)),
        _counted("slots as the app's structure has them", judged),
        *disturbances(judged),
        ["plans that call themselves valid", f"{len(valid)} of {len(judged)}", "", ""],
        ["those of them whose count, finding, throughput and p95 are right", f"{sum(e.misses_nothing for e in valid)} of {len(valid)}", "", ""],
        _bounded("median plan, s", median(plans_s), MEDIAN_PLAN_S),
        _bounded("longest plan, s", max(plans_s), results.budget_s),
    ]
    note = (
        "The truth has an error of its own. It is how far the two sweeps are apart, what the generator and other "
        "programs took of cores that were not idle, and how long the generator waited for a core. If more is sent than "
        "a count can carry, there is no p95 to predict."
    )
    return Table("Real stacks: what is required", ["", "is", "required", ""], rows, note)


def _all(title: str, count: int, among: int) -> list[str]:
    return [title, f"{count} of {among}", "all", verdict(count == among)]


def _counted(title: str, judged: list[Judged]) -> list[str]:
    structured = [each for each in judged if each.app.slots is not None]
    return [title, f"{sum(each.has_its_slots for each in structured)} of {len(structured)}", "", ""]


def _bounded(title: str, value: float, most: float) -> list[str]:
    return [title, f"{value:.0f}", f"at most {most:g}", verdict(value <= most)]


def _worst(points: list[Point]) -> str:
    return f"{max((abs(point.compared.throughput_error) for point in points), default=0.0):.1%}"


def _apps(judged: list[Judged]) -> Table:
    rows = [
        [
            each.app.name + (" *" if each.app.is_held_out else ""),
            each.app.stack,
            each.app.workload,
            _recommended(each),
            _finding(each),
            _slots(each),
            "suspect, then " * len(each.trial.suspect) + each.verdict,
            f"{each.plan_s:.0f}",
        ]
        for each in judged
    ]
    head = ["app", "stack", "asked", "recommended, best", "first finding", "slots", "verdict", "plan, s"]
    note = (
        "* held out: its plans are looked at only after a whole run. Slots: as found, and of how many by the "
        "app's structure, if it limits them. Best counts: of the median of the sweeps, and of each sweep."
    )
    return Table("Real stacks: by app", head, rows, note)


def _contradictions(judged: list[Judged]) -> Iterator[Table]:
    rows = [[each.app.name, said] for each in judged for said in contradictions.of(each.trial.plan)]
    if rows:
        yield Table("Real stacks: where a plan contradicts itself", ["app", "it says"], rows)


def _recommended(each: Judged) -> str:
    best = " or ".join(map(str, each.best))
    return f"{each.recommendation}, {best}" + ("" if each.is_right else ": missed")


def _finding(each: Judged) -> str:
    if each.is_found:
        return each.first_finding
    return f"{each.first_finding}: missed {' or '.join(each.app.limits)}"


def _slots(each: Judged) -> str:
    found = str(each.slots or "-")
    return found if each.app.slots is None else f"{found} of {each.app.slots}"


def _counts(judged: list[Judged]) -> Table:
    rows = [_count(each, point) for each in judged for point in each.points]
    head = ["app, instances", "requests/s", "apart", "generator", "predicted", "error"]
    head += ["p95, ms", "apart", "waited", "predicted", "of what is allowed"]
    note = (
        "Apart: how far the two sweeps are from each other. Generator: the cores that it took. In brackets: what it and "
        "other programs took that was not idle, as a share of the app's cores. Waited: how long the generator had no core, for "
        "each request; so much shorter p95 may be. Missed: only if the truth is known well enough. The error of p95 is a "
        "share of what is allowed."
    )
    return Table("Real stacks: by count", head, rows, note)


def _count(each: Judged, point: Point) -> list[str]:
    measured = point.compared.measured
    errors = sum(sample.errors for sample in point.samples)
    failed = f" ({errors} failed)" if errors else ""
    taken = f" ({point.taken:.1%})" if point.taken else ""
    error = point.compared.throughput_error
    missed = ": missed" if point.throughput_is_missed else ""
    used = point.p95_used
    late = ": missed" if point.p95_is_missed else ""
    return [
        f"{each.app.name}, {point.instances}",
        f"{measured.throughput:.1f}{failed}",
        f"{point.apart:.1%}",
        f"{median(sample.generator_cores for sample in point.samples):.2f}{taken}",
        f"{point.compared.predicted:.1f}",
        f"{error:+.1%}{missed}",
        milliseconds(measured.p95_ms),
        milliseconds(point.p95_apart_ms),
        milliseconds(point.waited_ms),
        milliseconds(point.compared.predicted_p95_ms),
        "-" if used is None else f"{used:.0%}{late}",
    ]
