"""`make bench-load`: Tenfold's load generator beside its peers, in one run."""

from __future__ import annotations

import dataclasses
import os
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import memory
import results as recorded
import tables
import truth
from generators import Generator, generators
from results import Results
from rounds import Rounds
from targets import Bench
from workloads import TENFOLD, WORKS, Work

from rig import machine, options, record
from rig.alternation import Alternation, Spare
from rig.options import Environment
from rig.program import main, now
from rig.table import Sheet

# Parts beside the works, as WORKS names them.
TRUTH, MEMORY = "truth", "memory"
TRUTH_ROUNDS = 5
# All of it takes 20 minutes undisturbed, and 25 at most.
REPEATED_S = 5 * 60


@dataclass(frozen=True)
class Options:
    """From the environment, as `make bench-load WORKS=small ROUNDS=3` sets it."""

    works: tuple[Work, ...]
    parts: frozenset[str]
    rounds: int
    window_s: float
    truth_s: float
    seed: int
    directory: Path

    @staticmethod
    def read(environment: Environment) -> Options:
        known = {work.name: work for work in WORKS}
        names = options.works(environment, [*known, TRUTH, MEMORY])
        seed = random.SystemRandom().randrange(1, 1_000_000)
        return Options(
            works=tuple(known[name] for name in names if name in known),
            parts=frozenset(names) & {TRUTH, MEMORY},
            rounds=int(options.number(environment, "ROUNDS", 5)),
            window_s=options.number(environment, "WINDOW", 2),
            truth_s=options.number(environment, "TRUTH_SECONDS", 20),
            seed=int(options.number(environment, "SEED", seed)),
            directory=options.results(environment),
        )


def measure() -> Sheet:
    wanted = Options.read(os.environ)
    programs = options.programs(os.environ, ("TENFOLD", "ORIGIN"), "bench-load")
    tenfold = programs["tenfold"]
    with Bench(programs["origin"]) as bench:
        results, installed = _begin(wanted, tenfold, bench)
        alternation = Alternation(wanted.rounds, wanted.seed, Spare(REPEATED_S))
        rounds = Rounds(bench, wanted.window_s, alternation)
        for work in wanted.works:
            able = [each for each in installed if work.need in each.can]
            if not any(each.name.startswith(TENFOLD) for each in able):
                results.skipped.append(f"{work.title}: this Tenfold has no {work.need.value}.")
                continue
            results.works[work.name] = rounds.work(work, able)
            # What was measured is kept, whatever comes.
            record.write(wanted.directory / tables.JSON, results)
        if TRUTH in wanted.parts:
            count = min(wanted.rounds, TRUTH_ROUNDS)
            results.truth = truth.measure(bench, tenfold, installed, count, wanted.truth_s)
            record.write(wanted.directory / tables.JSON, results)
        if MEMORY in wanted.parts:
            results.memory = memory.measure(bench, tenfold)
        return record.finish(wanted.directory / tables.JSON, results, tables.sheet)


def render(path: Path) -> Sheet:
    return tables.sheet(recorded.read(path))


def _begin(wanted: Options, tenfold: Path, bench: Bench) -> tuple[Results, list[Generator]]:
    print(f"bench: seed {wanted.seed}", file=sys.stderr)
    known = generators(tenfold)
    installed = [each for each in known if each.installed()]
    results = Results(
        started_at=now(),
        machine=dataclasses.asdict(machine.describe()),
        versions={each.name.partition(",")[0]: each.version() for each in installed},
        generator_core=bench.cores.measured,
        other_cores=bench.cores.others,
        seed=wanted.seed,
        rounds=wanted.rounds,
        window_s=wanted.window_s,
        truth_s=wanted.truth_s,
    )
    results.skipped += [f"{each.name}: not installed." for each in known if each not in installed]
    return results, installed


if __name__ == "__main__":
    sys.exit(main("bench-load", measure, tables.JSON, render))
