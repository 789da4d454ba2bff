"""`make bench-balancer`: Tenfold beside nginx, HAProxy, Caddy and Pingora, in one run."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

import idle
import machine
import results as recorded
import tables
import tail
from child import ChildFailed
from generators import GeneratorFailed, version
from proxies import AccessLog, Feature, Kind, Programs, kinds
from results import Results
from rounds import Rounds, Spare
from stage import Stage
from works import WORKS, Work

ROOT = Path(__file__).resolve().parents[2]
# Parts beside the works, as WORKS names them.
TAIL, IDLE = "tail", "idle"
TAIL_ROUNDS = 3
# All of it takes 33 minutes undisturbed, and 40 at most.
REPEATED_S = 7 * 60


class Misuse(Exception):
    """An option that cannot be used; the text says which, and what can be."""


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
    docs: Path

    @staticmethod
    def read(environment: dict[str, str]) -> Options:
        known = {work.name: work for work in WORKS}
        names = environment.get("WORKS", "").split() or [*known, TAIL, IDLE]
        for name in names:
            if name not in known and name not in (TAIL, IDLE):
                every = ", ".join([*known, TAIL, IDLE])
                raise Misuse(f"WORKS has {name!r}; use some of {every}, with blanks between them")
        return Options(
            works=tuple(known[name] for name in names if name in known),
            parts=frozenset(names) & {TAIL, IDLE},
            rounds=int(_number(environment, "ROUNDS", 5)),
            window_s=_number(environment, "WINDOW", 3),
            tail_s=_number(environment, "TAIL_SECONDS", 60),
            seed=int(_number(environment, "SEED", random.SystemRandom().randrange(1, 1_000_000))),
            directory=Path(environment.get("RESULTS", ROOT / "bench" / "results")),
            docs=ROOT / "docs" / "benchmarks.md",
        )


def main() -> int:
    if sys.argv[1:] == ["render"]:
        return render(Options.read(dict(os.environ)))
    signal.signal(signal.SIGTERM, _stop)
    try:
        options = Options.read(dict(os.environ))
        programs = find_programs(dict(os.environ))
        results = run(options, programs)
    except (Misuse, ChildFailed, GeneratorFailed) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(tables.text(results))
    return 0


def run(options: Options, programs: Programs) -> Results:
    available = kinds(programs)
    with Stage(programs) as stage:
        results = _begin(options, available, stage)
        rounds = Rounds(stage, options.rounds, options.window_s, options.seed, Spare(REPEATED_S))
        for log in AccessLog:
            _measure_works(options, available, stage, rounds, log, results)
        if TAIL in options.parts:
            count = min(options.rounds, TAIL_ROUNDS)
            results.tail = tail.measure(stage, programs, count, options.tail_s)
            results.write(options.directory / tables.JSON)
        if IDLE in options.parts:
            results.idle = idle.measure(stage, available)
        results.finished_at = _now()
        results.write(options.directory / tables.JSON)
        (options.directory / tables.TEXT).write_text(tables.text(results))
        return results


def render(options: Options) -> int:
    """Puts the tables of the last run into the documentation."""
    tables.put(recorded.read(options.directory / tables.JSON), options.docs)
    return 0


def find_programs(environment: dict[str, str]) -> Programs:
    """The Makefile says where it has built them."""
    found = {}
    for name in ("TENFOLD", "PINGORA", "ORIGIN"):
        path = Path(environment.get(name, ""))
        if not path.is_file():
            raise Misuse(f"{name}={path} is no program; run this as `make bench-balancer`")
        found[name.lower()] = path.resolve()
    # Servers live in sbin, which is not in everybody's path.
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    return Programs(**found)


def _measure_works(
    options: Options,
    available: list[Kind],
    stage: Stage,
    rounds: Rounds,
    log: AccessLog,
    results: Results,
) -> None:
    able = [kind for kind in available if log is AccessLog.OFF or _has(kind, Feature.ACCESS_LOG)]
    if not options.works:
        return
    if able[0] is not available[0]:
        results.skipped.append("Access logs on: this Tenfold writes none.")
        return
    proxies = {kind.name: stage.proxy(kind, log) for kind in able}
    for work in options.works:
        missing = [need.value for need in work.needs if need not in available[0].features]
        if missing:
            sentence = f"{work.title}: this Tenfold has no {', no '.join(sorted(missing))}."
            if sentence not in results.skipped:
                results.skipped.append(sentence)
            continue
        those = [proxies[kind.name] for kind in able if work.needs <= kind.features]
        of_log = results.works.setdefault(log.value, {})
        # Half a capacity is looked for once: a log changes it little.
        wanted = work if log is AccessLog.OFF else dataclasses.replace(work, open_loop=False)
        of_log[work.name] = rounds.work(wanted, those)
        # What was measured is kept, whatever comes.
        results.write(options.directory / tables.JSON)
    for proxy in proxies.values():
        stage.discard(proxy)


def _begin(options: Options, available: list[Kind], stage: Stage) -> Results:
    print(f"bench: seed {options.seed}", file=sys.stderr)
    return Results(
        started_at=_now(),
        machine=dataclasses.asdict(machine.describe()),
        versions={kind.name: kind.version() for kind in available}
        | {tool: version(tool) for tool in ("wrk", "h2load")},
        proxy_core=stage.cores.proxy,
        other_cores=stage.cores.others,
        seed=options.seed,
        rounds=options.rounds,
        window_s=options.window_s,
        tail_s=options.tail_s,
    )


def _has(kind: Kind, feature: Feature) -> bool:
    return feature in kind.features


def _number(environment: dict[str, str], name: str, default: float) -> float:
    text = environment.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 1_000_000:
        raise Misuse(f"{name}={text} is no number from 1 to 1000000")
    return value


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _stop(_: int, __: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
