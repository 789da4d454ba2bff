"""The tables of the results."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import results as recorded
import truth
from memory import THINK_S
from results import Measure, Quantiles, Results, TruthRun
from workloads import TENFOLD, WORKS, Goal, Work

from rig import machine
from rig.ratio import middle, ratio, verdict
from rig.table import Sheet, Table, milliseconds

JSON = "load.json"

TRUTH_GOAL = 0.02
LAG_GOAL_MS = 0.2
# 400 MB for 20,000.
USER_GOAL_BYTES = 20_000
MEGA = 1e6

PATTERNS = {
    "fixed": "Every answer takes 10 ms",
    "bimodal": "19 of 20 answers take 10 ms, one takes 100 ms",
    "stalling": "Answers take 10 ms, and every 5 s the server stands still for 500 ms",
}
QUANTILES = ["p50", "p90", "p99", "p99.9"]


def sheet(results: Results) -> Sheet:
    return Sheet(conditions(results), list(tables(results)), results.skipped)


def conditions(results: Results) -> str:
    cores = ", ".join(map(str, results.other_cores))
    siblings = results.machine["siblings"]
    alone = "" if siblings in ("", str(results.generator_core)) else f" (one of {siblings})"
    by_name = [each for work in results.works.values() for each in work.values()]
    measures = [measure for measures in by_name for measure in measures]
    disturbed = sum(measure.disturbed for measure in measures)
    return (
        machine.sentence(results.machine, results.started_at, results.finished_at)
        + ", ".join(f"{name} {version}" for name, version in results.versions.items())
        + f". The generator has core {results.generator_core}{alone}, the server core {cores}. "
        f"{results.rounds} rounds of {results.window_s:g} s, the generators' order shuffled "
        f"in every round (seed {results.seed}). A window in which others used more than "
        f"0.05 cores is measured again, twice at most; {disturbed} of {len(measures)} are "
        f"disturbed all the same."
    )


def tables(results: Results) -> Iterator[Table]:
    known = [work for work in WORKS if work.name in results.works]
    if any(work.goals for work in known):
        yield _goals(known, results)
    for work in known:
        yield _work(work, results.works[work.name])
    for pattern, runs in results.truth.items():
        yield _truth(pattern, runs)
    if results.memory:
        yield _memory(results)


def _goals(known: list[Work], results: Results) -> Table:
    rows = []
    for work in known:
        measured = results.works[work.name]
        for goal in work.goals:
            if goal.ours in measured and goal.peer in measured:
                rows.append([work.title, *_reached(goal, measured)])
    head = ["work", "engine", "over", "CPU a request, over its", "goal", ""]
    note = (
        "Ratios are medians of the ratio in each round, with the lowest and the highest. Requests "
        "a second and core are the inverse of CPU a request: 0.02 is 50 times as many."
    )
    return Table("Goals", head, rows, note)


def _reached(goal: Goal, measured: dict[str, list[Measure]]) -> list[str]:
    ours = ratio(recorded.cpu(measured[goal.ours]), recorded.cpu(measured[goal.peer]))
    met = verdict(ours.median <= goal.at_most)
    return [goal.ours, goal.peer, str(ours), f"at most {goal.at_most:.2f}", met]


def _work(work: Work, measured: dict[str, list[Measure]]) -> Table:
    rows = []
    yardstick = measured.get(work.yardstick)
    for name, measures in measured.items():
        used = recorded.cpu(measures)
        open_ = min(measure.connections for measure in measures)
        rows.append(
            [
                name if open_ >= work.connections else f"{name} (only {open_:,} connections)",
                f"{median(used):.1f}",
                str(ratio(used, recorded.cpu(yardstick))) if yardstick else "-",
                f"{median(each.rate for each in measures):,.0f}",
                f"{median(each.generator_cores for each in measures):.0%}",
                f"{median(each.server_cores for each in measures):.0%}",
                f"{median(each.rss for each in measures) / MEGA:,.0f}",
            ]
        )
    head = ["generator", "CPU a request", f"over {work.yardstick}'s", "requests/s"]
    head += ["its core", "the server's", "memory"]
    note = (
        "Microseconds of user and system time; how busy the cores of generator and server were "
        "(near 100 % is what limits the rate); MB resident. The server is "
        f"{work.server.value}."
    )
    return Table(work.title, head, rows, note)


def _truth(pattern: str, runs: dict[str, list[TruthRun]]) -> Table:
    nominal = map(milliseconds, truth.NOMINAL[pattern].each())
    rows = [["the server, as it was told", *nominal, ""]]
    ours = runs[TENFOLD]
    for name, all_of in runs.items():
        said = _middles([run.said for run in all_of])
        rows.append([f"{name} says", *map(milliseconds, said), _rate(all_of)])
        true = _middles([run.true for run in all_of])
        if name == TENFOLD:
            told = truth.NOMINAL[pattern]
            rows.append(["the truth, from when each was due", *map(milliseconds, true), ""])
            rows.append(["the truth, beyond what was told", *_errors(_lateness(told, ours)), ""])
            rows.append(["Tenfold's error", *_errors(_each_error(ours)), ""])
        else:
            rows.append(["the server, as it was", *map(milliseconds, true), ""])
    lag = middle([run.lag_p99_ms for run in ours])
    verdicts = ", ".join(sorted({run.verdict for run in ours if run.verdict}))
    seen = middle([run.seen_lag_p99_ms for run in ours])
    met = verdict(all(each is not None and each < LAG_GOAL_MS for each in (lag, seen)))
    note = (
        f"Milliseconds, medians of {len(ours)} runs. Tenfold sends {truth.RATE:,} requests a "
        "second whatever the server does, and counts from the time at which each was due. "
        "So does the truth: from then, by the run's beginning and the rate, to the answer, by the "
        "server's clock. What it has beyond what the server was told is the lateness of the server "
        "and of requests that went out late. Where that is far from none, other programs held the "
        "CPU of one of them. Answers that are read late are Tenfold's error. The goal for every "
        f"error, the median of the runs, is at most {TRUTH_GOAL:.0%}: {_truth_met(ours)}. By its "
        f"own words its requests went out {milliseconds(lag)} ms late at p99, "
        f"{milliseconds(seen)} ms as the server saw them come (goal: less than {LAG_GOAL_MS} ms, "
        f"{met}). Its verdict on its runs: {verdicts}."
    )
    if pattern == truth.STALLING:
        note += (
            " At its p90 waiting begins, and 1 request of 10,000 more or less is 0.5 ms: 5 %."
        )
    if truth.ASLEEP in runs:
        asleep = middle([run.lag_p99_ms for run in runs[truth.ASLEEP]])
        note += (
            " Idle cores are kept awake (`--dma-latency 0`); where they may sleep, requests went "
            f"out {milliseconds(asleep)} ms late."
        )
    if pattern == truth.STALLING and len(runs) > 1:
        note += (
            f" The others have {truth.USERS} users who wait for each answer. They send nearly as "
            "many requests while the server does not stall. For them the server counts from the "
            "kernel's time of arrival to the answer. In a stall 500 requests are due, and each user "
            "sends one. The waiting of all others is hidden. Locust reports what it has seen. At the end wrk adds "
            "requests that it takes to have been missing, by the average rate."
        )
    return Table(PATTERNS[pattern], ["", *QUANTILES, "requests/s"], rows, note)


def _errors(errors: list[float | None]) -> list[str]:
    return ["-" if error is None else f"{error:+.1%}" for error in errors]


def _truth_met(runs: list[TruthRun]) -> str:
    errors = _each_error(runs)
    return verdict(all(error is not None and abs(error) <= TRUTH_GOAL for error in errors))


def _each_error(runs: list[TruthRun]) -> list[float | None]:
    """What was said over what was true: of each quantile, the median of the runs."""
    of_runs = [_beyond(run.said, run.true) for run in runs]
    return [middle(list(each)) for each in zip(*of_runs, strict=True)]


def _lateness(told: Quantiles, runs: list[TruthRun]) -> list[float | None]:
    """The same of what was true over what the server was told."""
    of_runs = [_beyond(run.true, told) for run in runs]
    return [middle(list(each)) for each in zip(*of_runs, strict=True)]


def _beyond(these: Quantiles, those: Quantiles) -> list[float | None]:
    pairs = zip(these.each(), those.each(), strict=True)
    return [None if this is None or that is None else this / that - 1 for this, that in pairs]


def _middles(runs: list[Quantiles]) -> list[float | None]:
    return [middle(list(each)) for each in zip(*(run.each() for run in runs), strict=True)]


def _rate(runs: list[TruthRun]) -> str:
    return f"{median(run.rate for run in runs):,.0f}"


def _memory(results: Results) -> Table:
    rows = []
    for name, footprint in results.memory.items():
        each = footprint.rss / max(1, footprint.connections)
        met = verdict(each <= USER_GOAL_BYTES)
        cells = [f"{footprint.connections:,}", f"{footprint.rss / MEGA:.1f}", f"{each / 1000:.1f}"]
        rows.append([name, *cells, met])
    head = ["generator", "users", "resident", "a user", ""]
    note = (
        f"MB; kB. Users with a connection each, who think for {THINK_S} s between requests; 20,000 "
        "of them, or as many as this machine allows files. The goal is at most "
        f"{USER_GOAL_BYTES / 1000:.0f} kB a user, which is 400 MB for 20,000."
    )
    return Table("Memory of many users", head, rows, note)
