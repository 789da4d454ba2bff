"""The tables of the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import median

import curves
from apps import APPS, App
from results import Results, Trial

from rig import curve, machine
from rig.curve import Compared
from rig.plan import JudgedPlan, disturbances
from rig.ratio import verdict
from rig.table import Sheet, Table, milliseconds

JSON = "accuracy.json"

# As shares of the truth.
MOST_THROUGHPUT, MEDIAN_THROUGHPUT = 0.10, 0.03
MOST_P95, MEDIAN_P95 = 0.25, 0.10
# Shares of all, exactly: counts whose interval holds the truth, apps whose count is the best or one off.
HELD = Fraction(9, 10)
NEAR = Fraction(11, 12)


@dataclass(frozen=True)
class Judged(JudgedPlan):
    """An app with its prediction beside its truth."""

    app: App
    trial: Trial
    compared: list[Compared]
    # The last sweep by the first one.
    wander: list[Compared]
    best: int

    @staticmethod
    def of(app: App, trial: Trial) -> Judged:
        truth = curves.truth(trial.sweeps)
        compared = list(curve.compare(trial.plan, truth))
        wander = list(curves.wander(trial.plan, trial.sweeps))
        return Judged(app, trial, compared, wander, curve.best_count(trial.plan["goal"], truth))

    @property
    def held(self) -> int:
        return sum(each.is_held for each in self.compared)

    @property
    def held_p95(self) -> int:
        return sum(each.is_p95_held for each in self.compared if each.p95_error is not None)

    def missed(self, error: Callable[[Compared], float | None], most: float) -> list[int]:
        """The counts that are further off than allowed, and than the sweeps are from each other."""
        apart = {each.measured.instances: abs(error(each) or 0) for each in self.wander}
        return [
            each.measured.instances
            for each in self.compared
            if abs(error(each) or 0) > max(most, apart.get(each.measured.instances, 0))
        ]

    @property
    def is_near(self) -> bool:
        return abs(self.recommended - self.best) <= 1

    @property
    def is_owned_up_to(self) -> bool:
        low, high = self.interval
        return self.is_near or low <= self.best <= high

    @property
    def sweep_s(self) -> float:
        return median(each["duration_s"] for each in self.trial.sweeps)


def sheet(results: Results) -> Sheet:
    known = [app for app in APPS if app.name in results.trials]
    judged = [Judged.of(app, results.trials[app.name]) for app in known]
    return Sheet(conditions(results), list(tables(judged)), results.skipped)


def conditions(results: Results) -> str:
    rounds = results.rounds
    sweeps = "one sweep" if rounds == 1 else f"the median of {rounds} sweeps, the plan in their middle,"
    return (
        machine.sentence(results.machine, results.started_at, results.finished_at)
        + f"The truth is {sweeps} with {results.sweep_s:g} s for each count; the plan starts from "
        f"scratch with a budget of {results.budget_s:g} s."
    )


def tables(judged: list[Judged]) -> Iterator[Table]:
    if judged:
        yield _requirements(judged)
        yield _apps(judged)
    for each in judged:
        yield _counts(each)


def _requirements(judged: list[Judged]) -> Table:
    throughput = [error for each in judged for error in _throughput_errors(each.compared)]
    p95 = [error for each in judged for error in _p95_errors(each.compared)]
    wander = [point for each in judged for point in each.wander]
    first = sum(each.first_finding == each.app.limit for each in judged)
    plan, sweep = sum(each.plan_s for each in judged), sum(each.sweep_s for each in judged)
    slowest = max(each.plan_s for each in judged)
    rows = [
        ["error of throughput, worst count", _worst(throughput), "", ""],
        _within_bounds("throughput", judged, lambda e: e.throughput_error, MOST_THROUGHPUT, len(throughput)),
        _bounded("error of throughput, median", median, throughput, MEDIAN_THROUGHPUT),
        ["error of p95, worst count", _worst(p95), "", ""],
        _within_bounds("p95", judged, lambda e: e.p95_error, MOST_P95, len(p95)),
        _bounded("error of p95, median", median, p95, MEDIAN_P95),
        _counted("intervals of throughput with the truth", sum(e.held for e in judged), len(throughput), HELD),
        _counted("intervals of p95 with the truth", sum(e.held_p95 for e in judged), len(p95), HELD),
        _counted("counts the best or one off", sum(e.is_near for e in judged), len(judged), NEAR),
        _counted("or the interval says so", sum(e.is_owned_up_to for e in judged), len(judged), 1),
        _counted("first findings that are right", first, len(judged), 1),
        *disturbances(judged),
        ["longest plan, s", f"{slowest:.0f}", "at most 60", verdict(slowest <= 60)],
        ["all plans and all sweeps, s", f"{plan:.0f}, {sweep:.0f}", f"1 : {sweep / plan:.1f}", ""],
    ]
    if wander:
        # What no prediction can do better than.
        between = "between the sweeps themselves: {}, worst and median"
        rows.append([between.format("throughput"), _errors(_throughput_errors(wander)), "", ""])
        rows.append([between.format("p95"), _errors(_p95_errors(wander)), "", ""])
    note = (
        "An error is that of the prediction, as a share of what was measured, over all counts of all apps. An "
        "interval holds the truth if the truth lies within it, give or take 2 % for the error of the sweep."
    )
    return Table("What is required", ["", "is", "required", ""], rows, note)


def _throughput_errors(compared: list[Compared]) -> list[float]:
    return [abs(each.throughput_error) for each in compared]


def _p95_errors(compared: list[Compared]) -> list[float]:
    return [abs(each.p95_error) for each in compared if each.p95_error is not None]


def _bounded(
    title: str, of: Callable[[list[float]], float], errors: list[float], most: float
) -> list[str]:
    value = of(errors) if errors else 0.0
    return [title, f"{value:.1%}", f"at most {most:.0%}", verdict(value <= most)]


def _within_bounds(
    what: str, judged: list[Judged], error: Callable[[Compared], float | None], most: float, among: int
) -> list[str]:
    """No count may be further off than allowed, or than the truth itself is uncertain."""
    missed = [f"{each.app.name} {count}" for each in judged for count in each.missed(error, most)]
    title = f"counts whose {what} is off by at most {most:.0%}, or by what their sweeps differ"
    held = f"{among - len(missed)} of {among}" + (f" (not {', '.join(missed)})" if missed else "")
    return [title, held, f"{among} of {among}", verdict(not missed)]


def _counted(title: str, count: int, among: int, share: Fraction | int) -> list[str]:
    least = ceil(share * among)
    return [title, f"{count} of {among}", f"{least} of {among}", verdict(count >= least)]


def _apps(judged: list[Judged]) -> Table:
    rows = [
        [
            each.app.name,
            _errors(_throughput_errors(each.compared)),
            _errors(_p95_errors(each.compared)),
            f"{_worst(_throughput_errors(each.wander))}, {_worst(_p95_errors(each.wander))}",
            f"{each.held} of {len(each.compared)}, {each.held_p95} of {len(_p95_errors(each.compared))}",
            _recommended(each),
            _finding(each),
            f"{each.plan_s:.0f}, {each.sweep_s:.0f}",
        ]
        for each in judged
    ]
    head = ["app", "throughput", "p95", "between sweeps", "intervals hold", "recommended, best"]
    head += ["first finding", "seconds of plan, sweep"]
    note = (
        "Throughput and p95: the error at the worst count, and the median error. Between sweeps: by how much the "
        "last one differs from the first one at the worst count, in throughput and in p95. Intervals hold: how many "
        "hold the truth, in throughput and in p95."
    )
    return Table("By app", head, rows, note)


def _errors(errors: list[float]) -> str:
    return f"{max(errors):.1%}, {median(errors):.1%}" if errors else "-"


def _worst(errors: list[float]) -> str:
    return f"{max(errors):.1%}" if errors else "-"


def _recommended(each: Judged) -> str:
    return f"{each.recommendation}, {each.best}" + ("" if each.is_near else ": missed")


def _finding(each: Judged) -> str:
    if each.first_finding == each.app.limit:
        return each.first_finding
    return f"{each.first_finding}: missed {each.app.limit}"


def _counts(each: Judged) -> Table:
    rows = [
        [
            str(point.measured.instances),
            f"{point.measured.throughput:.1f}",
            f"{point.predicted:.1f}",
            _interval(point),
            f"{point.throughput_error:+.1%}",
            milliseconds(point.measured.p95_ms),
            milliseconds(point.predicted_p95_ms),
            "-" if point.p95_error is None else f"{point.p95_error:+.1%}",
        ]
        for point in each.compared
    ]
    head = ["instances", "requests/s", "predicted", "interval", "error"]
    head += ["p95, ms", "predicted", "error"]
    app = each.app
    return Table(f"{app.name} ({app.language}, {app.limit})", head, rows)


def _interval(point: Compared) -> str:
    """Nothing where the instances can do more than is sent: that is no estimate."""
    is_point = point.high - point.low < 0.001 * point.high
    return "-" if is_point else f"{point.low:.1f} - {point.high:.1f}"
