"""`make foreign`: plans of real stacks beside what another generator sees of them."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import results as recorded
import sweep
import tables
from apps import APPS, App
from results import Results, Trial

from rig import again, machine, options, record, speed
from rig.child import ChildFailed
from rig.options import ROOT, Misuse
from rig.program import GeneratorFailed, main, now
from rig.table import Sheet
from rig.tenfold import Tenfold, TenfoldFailed

DOCS = ROOT / "docs" / "accuracy.md"
BUDGET_S = 60
# What a plan takes beside its budget: starts, and an answer that is under way.
PATIENCE_S = 120
FAILURES = (TenfoldFailed, GeneratorFailed, ChildFailed, OSError, subprocess.SubprocessError)


def measure() -> Sheet:
    names = options.works(os.environ, [app.name for app in APPS], "APPS")
    sweep_s = options.number(os.environ, "SWEEP", 8)
    program = options.programs(os.environ, ("TENFOLD",), "foreign")["tenfold"]
    if not sweep.GENERATOR.is_file():
        raise Misuse(f"there is no {sweep.GENERATOR}; run this as `make foreign`")
    path = options.results(os.environ) / tables.JSON
    results = _begun(path, names, sweep_s)
    with Tenfold(program) as tenfold:
        for app in (app for app in APPS if app.name in names):
            try:
                results.trials[app.name] = _trial(tenfold, program, app, sweep_s)
                results.failed.pop(app.name, None)
            except FAILURES as error:
                results.failed[app.name] = f"{app.name}: {error}"
            # What was measured stays, whatever comes.
            record.write(path, results)
            print(f"bench: {now()} {results.failed.get(app.name, f'{app.name} is done')}", file=sys.stderr)
    return record.finish(path, results, tables.sheet)


def render(path: Path) -> Sheet:
    return tables.sheet(recorded.read(path))


def _begun(path: Path, names: list[str], sweep_s: float) -> Results:
    """Nothing yet; where only some apps are asked for, what this machine has measured of the others."""
    results = Results(now(), dataclasses.asdict(machine.describe()), sweep_s, BUDGET_S)
    if len(names) < len(APPS) and path.is_file():
        earlier = recorded.read(path)
        if (earlier.machine, earlier.sweep_s) == (results.machine, sweep_s):
            earlier.finished_at = ""
            return earlier
    return results


def _trial(tenfold: Tenfold, program: Path, app: App, sweep_s: float) -> Trial:
    # The plan comes first: a user's balancer has the slots that it names.
    arguments = ["--quiet", "--config", str(app.config), "--budget", f"{BUDGET_S}s"]
    # A suspect plan is no answer, and says what to do: plan again.
    (before_s, plan), suspect = again.undisturbed(
        lambda: (speed.work_s(), tenfold.document("plan", arguments, PATIENCE_S)),
        lambda planned: planned[1]["verdict"] == "suspect",
    )
    work_s = [before_s, speed.work_s()]
    # The machine varies: two sweeps show by how much.
    sweeps = []
    for _ in range(2):
        sweeps.append(sweep.sweep(program, app, plan["balancer_slots"], sweep_s))
        work_s.append(speed.work_s())
    return Trial(plan, *sweeps, [each for _, each in suspect], work_s)


if __name__ == "__main__":
    sys.exit(main("foreign", measure, tables.JSON, render, DOCS))
