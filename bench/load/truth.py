"""Truth: what generators say of a server that writes down when each request came and was answered.

A request of Tenfold's took from the time at which it was due until the server's answer: when it was
due follows from the run's beginning and the rate, not from anything that was measured. So the
server's own lateness is true waiting, and whatever the generator adds, hides or reads late is its
error. Users who wait for answers have no such times: their requests took from the kernel's time of
arrival to the answer.
"""

from __future__ import annotations

import csv
import http.client
import json
import math
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from generators import PROGRAMS, Generator, base, environment
from results import Quantiles, TruthRun
from targets import HERE, Bench
from workloads import TENFOLD, WRK

from rig import quantile
from rig.child import Child, free_ports
from rig.machine import Quiet

FIXED, STALLING = "fixed", "stalling"
# By pattern, what the server was told, in milliseconds. Requests that arrive from 10 ms before a
# stall on wait for its end: of 5,000 ms, those of 500 take from 10 to 510 ms, evenly.
NOMINAL = {
    FIXED: Quantiles(10, 10, 10, 10),
    "bimodal": Quantiles(10, 10, 100, 100),
    STALLING: Quantiles(10, 10, 460, 505),
}
# Requests a second of the open load.
RATE = 1000
# Of the closed ones: with 10 ms an answer, nearly as many requests.
USERS = 10
NANOSECONDS = 1e9
THOUSAND = 1e3
PATIENCE_S = 30.0
# Idle cores that sleep, and kernel threads that take the generator's core for milliseconds, are no
# generator's doing. Root can prevent both. The record has figures with sleeping cores as well.
ROOT = os.geteuid() == 0
AWAKE = ["--dma-latency", "0"] if ROOT and Path("/dev/cpu_dma_latency").exists() else []
FIRST = ["chrt", "--rr", "1"] if ROOT else []
ASLEEP = "Tenfold, idle cores asleep,"


@dataclass(frozen=True)
class Said:
    quantiles: Quantiles
    lag_p99_ms: float | None = None
    verdict: str | None = None
    # Seconds since 1970: when the first request was due, and from when until when answers count.
    began: float | None = None
    between: tuple[float, float] | None = None


@dataclass(frozen=True)
class Record:
    """A request at the server; seconds since 1970."""

    arrived: float
    answered: float


@dataclass(frozen=True)
class Witness:
    """A generator, told to say what it has seen."""

    name: str
    # Of a URL, seconds, and a directory for what it writes.
    command: Callable[[str, float, Path], list[str]]
    # Of what it said, and that directory.
    read: Callable[[str, Path], Said]


def measure(
    bench: Bench, tenfold: Path, installed: list[Generator], rounds: int, seconds: float
) -> dict[str, dict[str, list[TruthRun]]]:
    """By pattern, then by witness."""
    names = {generator.name for generator in installed}
    ours = _tenfold(TENFOLD, tenfold, AWAKE)
    beside = {
        FIXED: [_tenfold(ASLEEP, tenfold, [])] if AWAKE else [],
        STALLING: [witness for witness in (_WRK, _LOCUST) if witness.name in names],
    }
    results: dict[str, dict[str, list[TruthRun]]] = {}
    for pattern in NOMINAL:
        of_pattern = results.setdefault(pattern, {})
        for number in range(rounds):
            # Waiting that is hidden is hidden every time.
            for witness in [ours, *(beside.get(pattern, []) if number == 0 else [])]:
                run = _one(bench, pattern, witness, seconds)
                of_pattern.setdefault(witness.name, []).append(run)
                print(f"truth     {pattern:9} {witness.name:9} {run}", file=sys.stderr, flush=True)
    return results


def _one(bench: Bench, pattern: str, witness: Witness, seconds: float) -> TruthRun:
    port = free_ports(1)[0]
    address = f"127.0.0.1:{port}"
    server = bench.origin("times", pattern, address)
    server.await_ports([port])
    directory = bench.directory / f"truth-{port}"
    directory.mkdir()
    command = witness.command(f"http://{address}/128", seconds, directory)
    core, output = [bench.cores.measured], directory / "output"
    child = Child(witness.name, [*FIRST, *command], core, output, environment(bench.directory))
    bench.child(child)
    quiet = Quiet({*child.tree(), *server.tree()})
    child.finish(seconds + PATIENCE_S)
    disturbed = quiet.noise().disturbed
    said = witness.read(child.said(), directory)
    records = _records(port)
    server.stop()
    due = [record.arrived for record in records]
    if said.began is not None:
        # The k-th to come is the k-th that was due.
        due = [said.began + k / RATE for k in range(len(records))]
    took = _took(due, records, said.between)
    sent_late = [record.arrived - at for at, record in zip(due, records, strict=True)]
    return TruthRun(
        rate=len(took) / seconds,
        said=said.quantiles,
        true=_quantiles(took),
        lag_p99_ms=said.lag_p99_ms,
        seen_lag_p99_ms=_quantiles(sent_late).p99 if said.began is not None else None,
        verdict=said.verdict,
        disturbed=disturbed,
    )


def _records(port: int) -> list[Record]:
    """In the order in which they came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", "/truth")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    records = []
    for line in lines:
        answered, took = map(int, line.split())
        records.append(Record((answered - took) / NANOSECONDS, answered / NANOSECONDS))
    return sorted(records, key=lambda record: record.arrived)


def _took(
    due: list[float], records: list[Record], between: tuple[float, float] | None
) -> list[float]:
    """Seconds from when each was due to its answer, of those answered then."""
    first, last = between or (0.0, math.inf)
    return [
        record.answered - at
        for at, record in zip(due, records, strict=True)
        if first <= record.answered <= last
    ]


def _quantiles(seconds: list[float]) -> Quantiles:
    if not seconds:
        return Quantiles(None, None, None, None)
    ordered = sorted(seconds)
    each = (quantile.nearest(ordered, share) for share in (0.5, 0.9, 0.99, 0.999))
    return Quantiles(*(took * THOUSAND for took in each))


def _tenfold(name: str, program: Path, flags: list[str]) -> Witness:
    def command(url: str, seconds: float, directory: Path) -> list[str]:
        load = [str(program), "load", url, "--rate", str(RATE), "--duration", f"{seconds:g}s"]
        return [*load, *flags, "--quiet", "--json", str(directory / "report.json")]

    def read(_: str, directory: Path) -> Said:
        report = json.loads((directory / "report.json").read_text())
        times = report["response_ms"]
        began = datetime.fromisoformat(report["started_at"]).timestamp()
        counted = began + (report["warm_up"] or {"length_s": 0})["length_s"]
        return Said(
            Quantiles(*(times.get(name) for name in ("p50", "p90", "p99", "p999"))),
            lag_p99_ms=report["schedule_lag_ms"]["p99"],
            verdict=report["verdict"],
            began=began,
            between=(counted, counted + report["duration_s"]),
        )

    return Witness(name, command, read)


def _wrk_command(url: str, seconds: float, _: Path) -> list[str]:
    script = str(HERE / "percentiles.lua")
    return ["wrk", "-t1", f"-c{USERS}", f"-d{seconds:.0f}", "-s", script, url]


def _wrk_said(said: str, _: Path) -> Said:
    found = re.findall(r"^percentile \S+ ([\d.]+)$", said, re.MULTILINE)
    return Said(Quantiles(*map(float, found)))


def _locust_command(url: str, seconds: float, directory: Path) -> list[str]:
    command = [PROGRAMS["locust"], "-f", str(HERE / "locustfile.py")]
    command += ["--headless", "--only-summary", "--loglevel", "ERROR", "-H", base(url)]
    command += ["-u", str(USERS), "-r", str(USERS), "-t", f"{seconds:.0f}s"]
    return [*command, "--csv", str(directory / "locust")]


def _locust_said(_: str, directory: Path) -> Said:
    with (directory / "locust_stats.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["Name"] == "Aggregated"]
    return Said(Quantiles(*(float(rows[0][name]) for name in ("50%", "90%", "99%", "99.9%"))))


_WRK = Witness(WRK, _wrk_command, _wrk_said)
_LOCUST = Witness("Locust", _locust_command, _locust_said)
