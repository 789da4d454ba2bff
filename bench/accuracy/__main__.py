"""`make bench-accuracy`: what plans predict beside what sweeps measure."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import results as recorded
import tables
from apps import APPS, App
from results import Results, Trial

from rig import again, machine, options, record, speed
from rig.curve import Document
from rig.options import ROOT, Environment
from rig.program import main, now
from rig.table import Sheet
from rig.tenfold import Tenfold, TenfoldFailed

DOCS = ROOT / "docs" / "accuracy.md"
BUDGET_S = 60
# A start, a ladder, and what a count needs beside the time in which it is measured.
PATIENCE_S = 120


@dataclass(frozen=True)
class Options:
    """From the environment, as `make bench-accuracy APPS="cpu lock" SWEEP=5` sets it."""

    apps: tuple[App, ...]
    rounds: int
    sweep_s: float
    directory: Path

    @staticmethod
    def read(environment: Environment) -> Options:
        known = {app.name: app for app in APPS}
        names = options.works(environment, list(known), "APPS")
        return Options(
            apps=tuple(known[name] for name in names),
            rounds=int(options.number(environment, "ROUNDS", 2)),
            sweep_s=options.number(environment, "SWEEP", 5),
            directory=options.results(environment),
        )


def measure() -> Sheet:
    wanted = Options.read(os.environ)
    program = options.programs(os.environ, ("TENFOLD",), "bench-accuracy")["tenfold"]
    results = Results(
        started_at=now(),
        machine=dataclasses.asdict(machine.describe()),
        sweep_s=wanted.sweep_s,
        budget_s=BUDGET_S,
        rounds=wanted.rounds,
    )
    with Tenfold(program) as tenfold:
        for app in wanted.apps:
            try:
                results.trials[app.name] = _trial(tenfold, app, wanted)
            except (TenfoldFailed, OSError, subprocess.CalledProcessError) as error:
                results.skipped.append(f"{app.name}: {error}")
            # What was measured is kept, whatever comes.
            record.write(wanted.directory / tables.JSON, results)
            print(f"bench: {now()} {app.name} is done", file=sys.stderr)
    return record.finish(wanted.directory / tables.JSON, results, tables.sheet)


def render(path: Path) -> Sheet:
    return tables.sheet(recorded.read(path))


def _trial(tenfold: Tenfold, app: App, wanted: Options) -> Trial:
    if app.build:
        subprocess.run(app.build, cwd=app.config.parent, check=True)
    common = ["--quiet", "--config", str(app.config), "--budget", f"{BUDGET_S}s", *app.arguments]
    sweep = [*common, f"--sweep={wanted.sweep_s:g}s", "--max-instances", str(app.most)]
    patience_s = PATIENCE_S + app.most * (2 * wanted.sweep_s + 5)
    work_s = [speed.work_s()]

    def measured(arguments: list[str], patience_s: float) -> Document:
        document = tenfold.document("plan", arguments, patience_s)
        work_s.append(speed.work_s())
        return document

    def truth(rounds: int) -> list[Document]:
        return [measured(sweep, patience_s) for _ in range(rounds)]

    # The machine varies: of two sweeps one is before the plan, the other one after it.
    before = truth(wanted.rounds // 2)
    # A suspect plan is no answer, and says what to do: plan again.
    plan, suspect = again.undisturbed(
        lambda: measured(common, PATIENCE_S), lambda plan: plan["verdict"] == "suspect"
    )
    after = truth(wanted.rounds - wanted.rounds // 2)
    return Trial(plan, before + after, work_s, suspect)


if __name__ == "__main__":
    sys.exit(main("bench-accuracy", measure, tables.JSON, render, DOCS))
