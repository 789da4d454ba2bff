"""The tables of the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import results as recorded
import tail
from proxies import TENFOLD
from results import Latency, Measure, Results, WorkResults
from workloads import WORKS, Work

from rig import machine
from rig.ratio import middle, ratio, verdict
from rig.table import Sheet, Table, milliseconds

JSON = "balancer.json"

IDLE_GOAL_BYTES = 100_000_000
TAIL_GOAL_NGINX = 0.75
TAIL_GOAL_SIMULATED = 1.10
MEGA = 1e6


def sheet(results: Results) -> Sheet:
    return Sheet(conditions(results), list(tables(results)), results.skipped)


def conditions(results: Results) -> str:
    cores = ", ".join(map(str, results.other_cores))
    siblings = results.machine["siblings"]
    alone = "" if siblings in ("", str(results.proxy_core)) else f" (one of {siblings})"
    measures = list(_measures(results))
    more = "".join(
        f" ({work.repeats} times as many of {work.title})" for work in WORKS if work.repeats > 1
    )
    disturbed = sum(measure.disturbed for measure in measures)
    return (
        machine.sentence(results.machine, results.started_at, results.finished_at)
        + ", ".join(f"{name} {version}" for name, version in results.versions.items())
        + f". The proxy has core {results.proxy_core}{alone} with one worker or thread; origin and "
        f"generator have core {cores}. {results.rounds} rounds of {results.window_s:g} s each{more}, the "
        f"order of the proxies shuffled in every round (seed {results.seed}). A window in which "
        f"others used more than 0.05 cores is measured again, twice at most; {disturbed} of "
        f"{len(measures)} are disturbed all the same."
    )


def tables(results: Results) -> Iterator[Table]:
    for log, works in results.works.items():
        known = [work for work in WORKS if work.name in works]
        yield _goals(known, works, log)
        yield _cpu(known, works, log)
        yield _rates(known, works, log)
        if log == "off":
            yield _latencies(known, works)
        yield _memory(known, works, log)
    if results.tail:
        yield _tail(results)
    if results.idle:
        yield _idle(results)


def _goals(known: list[Work], works: dict[str, WorkResults], log: str) -> Table:
    rows = []
    for work in known:
        measured = works[work.name]
        peer = recorded.best(measured, work.against)
        ours = ratio(recorded.cpu(measured, TENFOLD), recorded.cpu(measured, peer))
        met = verdict(ours.median <= work.goal)
        rows.append([work.title, peer, str(ours), f"at most {work.goal:.2f}", met])
    head = ["work", "the better of nginx and HAProxy", "CPU, Tenfold's over its", "goal", ""]
    note = (
        "Ratios are medians of the ratio in each round, with the lowest and the highest. "
        "64 connections that are kept alive, unless said."
    )
    return Table(f"Goals, access logs {log}", head, rows, note)


def _cpu(known: list[Work], works: dict[str, WorkResults], log: str) -> Table:
    names = _names(works)
    rows = []
    for work in known:
        cells = [work.title]
        for name in names:
            if name not in works[work.name].measures:
                cells.append("-")
                continue
            used = recorded.cpu(works[work.name], name)
            cell = f"{median(used):.1f}"
            if name != TENFOLD:
                ours = recorded.cpu(works[work.name], TENFOLD)
                cell += f" ({ratio(ours, used)})"
            cells.append(cell)
        rows.append(cells)
    note = "Microseconds, user and system; in brackets Tenfold's over this one's."
    return Table(f"CPU a request, access logs {log}", ["work", *names], rows, note)


def _rates(known: list[Work], works: dict[str, WorkResults], log: str) -> Table:
    names = _names(works)
    rows = []
    for work in known:
        cells = [work.title]
        for name in names:
            measures = works[work.name].measures.get(name, [])
            if not measures:
                cells.append("-")
                continue
            errors = sum(measure.errors for measure in measures)
            cell = f"{median(m.rate for m in measures):,.0f}"
            cell += f" ({median(m.proxy_cores for m in measures):.0%}"
            lines = sum(measure.log_lines or 0 for measure in measures)
            logged = lines / max(1, sum(measure.requests for measure in measures))
            others = median(m.origin_cores + m.generator_cores for m in measures)
            cell += f", {others:.0%})" + (f", {errors} errors" if errors else "")
            cell += f", {logged:.0%} logged" if log == "on" else ""
            cells.append(cell)
        rows.append(cells)
    note = (
        "In brackets how busy the proxy's core was with it, and the other cores with origin and "
        "generator: near 100 % limits the rate."
    )
    return Table(f"Requests a second, access logs {log}", ["work", *names], rows, note)


def _latencies(known: list[Work], works: dict[str, WorkResults]) -> Table:
    names = _names(works)
    rows = []
    for work in known:
        p50 = {name: [m.p50_ms for m in each] for name, each in _timed(works[work.name])}
        p99 = {name: [m.p99_ms for m in each] for name, each in _timed(works[work.name])}
        if not any(map(middle, p99.values())):
            continue
        latencies = works[work.name].latencies.get(TENFOLD)
        rate = latencies[0].rate if latencies else float(work.rate or 0)
        cells = [
            f"{milliseconds(middle(p50[name]))} / {milliseconds(middle(p99[name]))}"
            for name in names
        ]
        rows.append([f"{work.title}, {rate:,.0f}/s", *cells, *_judged(p99[TENFOLD], p99["nginx"])])
    note = (
        "Milliseconds from the intended send time, p50 / p99, medians of the rounds, at half of "
        "the slowest proxy's capacity where the work gives no rate. The generator speaks plain "
        "HTTP/1.1 only. The p99 of a round depends on a few pauses of the machine. So the ratio to "
        "nginx's is taken in each round: its median, lowest and highest. The goal is met if the "
        "median is at most 1, and missed if the ratio is above 1 in every round. Chance alone does "
        "that in one of 32 times with five rounds. Between the two no difference is shown."
    )
    head = ["work", *names, "p99, Tenfold's over nginx's", "no worse"]
    return Table("Response time at half load", head, rows, note)


def _judged(ours: list[float | None], theirs: list[float | None]) -> list[str]:
    """The ratio of two in the rounds that both have, and what it says."""
    pairs = [
        (our, their)
        for our, their in zip(ours, theirs, strict=True)
        if our is not None and their is not None
    ]
    if not pairs:
        return ["-", "-"]
    found = ratio([our for our, _ in pairs], [their for _, their in pairs])
    if found.low <= 1 < found.median:
        return [str(found), "no difference"]
    return [str(found), verdict(found.median <= 1)]


def _timed(work: WorkResults) -> Iterator[tuple[str, Sequence[Measure | Latency]]]:
    """The windows at a fixed rate, by proxy."""
    for name, measures in work.measures.items():
        yield name, work.latencies.get(name, measures)


def _memory(known: list[Work], works: dict[str, WorkResults], log: str) -> Table:
    names = _names(works)
    rows = []
    for work in known:
        cells = [work.title]
        for name in names:
            measures = works[work.name].measures.get(name, [])
            if measures:
                rss, pss = median(m.rss for m in measures), median(m.pss for m in measures)
                cells.append(f"{rss / MEGA:.0f} / {pss / MEGA:.0f}")
            else:
                cells.append("-")
        rows.append(cells)
    return Table(
        f"Memory during the work, access logs {log}",
        ["work", *names],
        rows,
        "MB, resident / proportional. A proxy does all works in turn without a restart.",
    )


def _tail(results: Results) -> Table:
    rows = []
    for name, runs in results.tail.items():
        quantiles = [
            middle([run.p50_ms for run in runs]),
            middle([run.p95_ms for run in runs]),
            middle([run.p99_ms for run in runs]),
            middle([run.p999_ms for run in runs]),
        ]
        errors = sum(run.errors for run in runs)
        rows.append(
            [name + (f" ({errors} errors)" if errors else ""), *map(milliseconds, quantiles)]
        )
    ideals = [run.ideal for run in results.tail[tail.OURS]]
    simulated = [
        middle([ideal.p50 for ideal in ideals]),
        middle([ideal.p95 for ideal in ideals]),
        middle([ideal.p99 for ideal in ideals]),
        middle([ideal.p999 for ideal in ideals]),
    ]
    rows.append(["a central queue, simulated", *map(milliseconds, simulated)])
    ours = [run.p99_ms for run in results.tail[tail.OURS]]
    least_conn = [run.p99_ms for run in results.tail[tail.NGINX_LEAST_CONN]]
    maxconn = [run.p99_ms for run in results.tail[tail.HAPROXY_MAXCONN]]
    goals = [
        _bound(ours, least_conn, TAIL_GOAL_NGINX, "of nginx least_conn"),
        _bound(ours, maxconn, 1.0, "of HAProxy with maxconn 1"),
        _bound(ours, [ideal.p99 for ideal in ideals], TAIL_GOAL_SIMULATED, "of the simulation"),
    ]
    rounds = len(next(iter(results.tail.values())))
    note = (
        f"Milliseconds from the intended send time, medians of {rounds} rounds of "
        f"{results.tail_s:g} s at {tail.RATE:g}/s, Poisson. Four instances serve one request "
        "at a time, 95 % in 5 ms and 5 % in 100 ms. The k-th request that begins takes the same "
        "time with every balancer, and the arrivals are the same. The balancers run side by side, "
        "each with instances of its own that sleep. The simulation is one of exactly these rounds: "
        "an ideal queue with the same arrivals and the same times, and nothing in between. The p99 "
        "of Tenfold as a ratio, median, lowest and highest of the rounds: "
        + "; ".join(goals)
        + "."
    )
    title = "Tail with instances that serve one request at a time"
    return Table(title, ["balancer", "p50", "p95", "p99", "p99.9"], rows, note)


def _idle(results: Results) -> Table:
    rows = []
    for name, idle in results.idle.items():
        each = (idle.rss - idle.rss_before) / idle.connections
        sizes = [idle.rss_before, idle.rss, idle.pss]
        rows.append([name, *(f"{size / MEGA:.1f}" for size in sizes), f"{each / 1000:.1f}"])
    connections = next(iter(results.idle.values())).connections
    ours = results.idle[TENFOLD].rss
    met = verdict(ours <= IDLE_GOAL_BYTES)
    note = (
        f"A fresh proxy; each connection has had one answer. MB; kB. The goal for Tenfold is at "
        f"most {IDLE_GOAL_BYTES / MEGA:.0f} MB: {met} with {ours / MEGA:.1f} MB."
    )
    head = ["proxy", "resident at start", "resident", "proportional", "a connection"]
    return Table(f"{connections:,} idle client connections", head, rows, note)


def _bound(
    ours: list[float | None], theirs: list[float | None], goal: float, whose: str
) -> str:
    """Judged by the ratios of the rounds: in each, all had the same arrivals."""
    pairs = [(our, their) for our, their in zip(ours, theirs, strict=True) if our and their]
    if not pairs:
        return f"{whose}: not measured"
    found = ratio([our for our, _ in pairs], [their for _, their in pairs])
    return f"{found} {whose}, goal at most {goal:.2f}, {verdict(found.median <= goal)}"


def _names(works: dict[str, WorkResults]) -> list[str]:
    """In the order in which they were measured first."""
    return list(dict.fromkeys(name for work in works.values() for name in work.measures))


def _measures(results: Results) -> Iterator[Measure]:
    for works in results.works.values():
        for work in works.values():
            for measures in work.measures.values():
                yield from measures
