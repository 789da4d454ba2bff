"""`make bench-balancer`: Tenfold beside nginx, HAProxy, Caddy and Pingora, in one run."""

from __future__ import annotations

import dataclasses
import os
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import idle
import results as recorded
import tables
import tail
from proxy_stage import ProxyStage
from proxies import AccessLog, Feature, Kind, Programs, kinds
from results import Results
from rounds import Rounds
from workloads import WORKS, Work

from rig import machine, options, record
from rig.alternation import Alternation, Spare
from rig.options import Environment
from rig.program import main, now
from rig.stage import version
from rig.table import Sheet

# Parts beside the works, as WORKS names them.
TAIL, IDLE = "tail", "idle"
# All of it takes 40 minutes undisturbed, and 47 at most.
REPEATED_S = 7 * 60


@dataclass(frozen=True)
class Options:
    """From the environment, as `make bench-balancer WORKS=small ROUNDS=3` sets it."""

    works: tuple[Work, ...]
    parts: frozenset[str]
    rounds: int
    window_s: float
    tail_s: float
    seed: int
    directory: Path

    @staticmethod
    def read(environment: Environment) -> Options:
        known = {work.name: work for work in WORKS}
        names = options.works(environment, [*known, TAIL, IDLE])
        seed = random.SystemRandom().randrange(1, 1_000_000)
        return Options(
            works=tuple(known[name] for name in names if name in known),
            parts=frozenset(names) & {TAIL, IDLE},
            rounds=int(options.number(environment, "ROUNDS", 5)),
            window_s=options.number(environment, "WINDOW", 3),
            tail_s=options.number(environment, "TAIL_SECONDS", 60),
            seed=int(options.number(environment, "SEED", seed)),
            directory=options.results(environment),
        )


def measure() -> Sheet:
    wanted = Options.read(os.environ)
    names = ("TENFOLD", "PINGORA", "ORIGIN", "ARRIVALS")
    programs = Programs(**options.programs(os.environ, names, "bench-balancer"))
    return run(wanted, programs)


def run(wanted: Options, programs: Programs) -> Sheet:
    available = kinds(programs)
    with ProxyStage(programs) as stage:
        results = _begin(wanted, available, stage)
        alternation = Alternation(wanted.rounds, wanted.seed, Spare(REPEATED_S))
        rounds = Rounds(stage, wanted.window_s, alternation)
        for log in AccessLog:
            _measure_works(wanted, available, stage, rounds, log, results)
        if TAIL in wanted.parts:
            results.tail = tail.measure(stage, programs, wanted.rounds, wanted.tail_s)
            record.write(wanted.directory / tables.JSON, results)
        if IDLE in wanted.parts:
            results.idle = idle.measure(stage, available)
        return record.finish(wanted.directory / tables.JSON, results, tables.sheet)


def render(path: Path) -> Sheet:
    return tables.sheet(recorded.read(path))


def _measure_works(
    wanted: Options,
    available: list[Kind],
    stage: ProxyStage,
    rounds: Rounds,
    log: AccessLog,
    results: Results,
) -> None:
    able = [kind for kind in available if log is AccessLog.OFF or _has(kind, Feature.ACCESS_LOG)]
    if not wanted.works:
        return
    if able[0] is not available[0]:
        results.skipped.append("Access logs on: this Tenfold writes none.")
        return
    proxies = {kind.name: stage.proxy(kind, log) for kind in able}
    for work in wanted.works:
        missing = [need.value for need in work.needs if need not in available[0].features]
        if missing:
            sentence = f"{work.title}: this Tenfold has no {', no '.join(sorted(missing))}."
            if sentence not in results.skipped:
                results.skipped.append(sentence)
            continue
        those = [proxies[kind.name] for kind in able if work.needs <= kind.features]
        of_log = results.works.setdefault(log.value, {})
        # Half a capacity is looked for once: a log changes it little.
        reduced = work if log is AccessLog.OFF else dataclasses.replace(work, open_loop=False)
        of_log[work.name] = rounds.work(reduced, those)
        # What was measured is kept, whatever comes.
        record.write(wanted.directory / tables.JSON, results)
    for proxy in proxies.values():
        stage.discard(proxy)


def _begin(wanted: Options, available: list[Kind], stage: ProxyStage) -> Results:
    print(f"bench: seed {wanted.seed}", file=sys.stderr)
    return Results(
        started_at=now(),
        machine=dataclasses.asdict(machine.describe()),
        versions={kind.name: kind.version() for kind in available}
        | {tool: version([tool, "--version"]) for tool in ("wrk", "h2load")},
        proxy_core=stage.cores.measured,
        other_cores=stage.cores.others,
        seed=wanted.seed,
        rounds=wanted.rounds,
        window_s=wanted.window_s,
        tail_s=wanted.tail_s,
    )


def _has(kind: Kind, feature: Feature) -> bool:
    return feature in kind.features


if __name__ == "__main__":
    sys.exit(main("bench-balancer", measure, tables.JSON, render))
