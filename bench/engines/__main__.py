"""`make engines`: the published systems in the engines that they were published in, beside processes."""

from __future__ import annotations

import dataclasses
import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import results as recorded
import tables
from results import Outcome, Results, Trial
from setups import NOTHING, SIZES, STATIC, SYSTEMS, Setup, System
from systems.cases import Case, users

from rig import machine, options, record
from rig.options import ROOT
from rig.program import main, now
from rig.sandbox import Sandbox
from rig.stage import version
from rig.table import Sheet

DOCS = ROOT / "docs" / "systems.md"
EXAMPLES = ROOT / "examples"
STACKS = Path(__file__).parent / "stacks"
COMPOSE = ROOT / ".deps" / "docker" / "cli-plugins" / "docker-compose"
PROCESSES = "processes"
# A stack starts its database before.
READY_S = 120
PATIENCE_S = 300
SIZED = [
    *("--cpus", "0.1,0.3,0.5,0.7,1", "--memory", "7M,8M,10M,14M,20M", "--instances", "1,3,5,7,10"),
    *("--longest", "8s"),
]


class Bench:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._examples = sandbox.take(EXAMPLES)
        sandbox.take(STACKS)
        sandbox.take(COMPOSE, "cli-plugins/docker-compose")
        unit = (STACKS / "fibscale@.service").read_text()
        sandbox.know_unit("fibscale@.service", unit.replace("EXAMPLES", self._examples))
        sandbox.make_image(NOTHING, [], [])
        folder = Path(self._examples) / "static-cost"
        subprocess.run(["cc", "-O2", "-static", "-o", "static", "static.c"], cwd=folder, check=True)
        command = 'CMD ["/static", "8000", "/index.html", "430"]'
        files = [folder / "static", folder / "index.html"]
        sandbox.make_image(STATIC, files, [command, "EXPOSE 8000", "ENV HOST=0.0.0.0"])

    def outcome(self, system: System) -> Outcome:
        processes = Setup(PROCESSES, ("--config", f"{{home}}/{system.case.folder}/tenfold.toml"))
        rate = self._rate(system, processes)
        trials, plans = {}, {}
        for setup in (processes, *system.setups):
            rows = ((row.instances, system.workload(row, rate)) for row in system.rows)
            trials[setup.name] = [self._trial(system.case, setup, *row) for row in rows]
            plans[setup.name] = self._plan(system, setup, rate)
            print(f"bench: {now()} {system.title}: {setup.name}", file=sys.stderr, flush=True)
        return Outcome(trials, plans, rate)

    def sizes(self) -> dict[str, dict[str, Any]]:
        """Of processes and of containers."""
        config = ("--config", f"{self._examples}/static-cost/tenfold.toml")
        cost = functools.partial(self._sandbox.document, "cost", patience_s=PATIENCE_S)
        return {
            PROCESSES: cost([*config, *SIZED], limits_processes=True),
            SIZES.name: cost([*SIZES.words, *SIZED]),
        }

    def _rate(self, system: System, processes: Setup) -> float | None:
        """Arrivals a second, where they are a multiple of what one instance answers."""
        if system.case.overload is None:
            return None
        load = self._trial(system.case, processes, 1, users(1)).load
        return round(system.case.overload * float(load["throughput"]), 1)

    def _trial(self, case: Case, setup: Setup, instances: int, workload: tuple[str, ...]) -> Trial:
        words = ["-n", str(instances), *self._words(case, setup)]
        with self._sandbox.serving(words, READY_S) as (address, start_s):
            words = [f"http://{address}{case.path}", *case.request, *workload]
            if case.warm_up:
                self._document("load", [*words, "--duration", case.warm_up])
            before = self._sandbox.cpu_ns(without_docker=not setup.is_container)
            load = self._document("load", [*words, *case.load])
            used_ns = self._sandbox.used_ns(before, without_docker=not setup.is_container)
        return Trial(start_s * 1e3, used_ns / 1e3 / max(1, load["requests"]), load)

    def _plan(self, system: System, setup: Setup, rate: float | None) -> dict[str, Any]:
        case = system.case.at(rate)
        words = [*self._words(case, setup), *system.goal, *case.request, *case.answer.workload]
        words += ["--path", case.path]
        return self._document("plan", words)

    def _words(self, case: Case, setup: Setup) -> list[str]:
        return [*(word.format(home=self._sandbox.home) for word in setup.words), *case.app]

    def _document(self, command: str, words: list[str]) -> dict[str, Any]:
        return self._sandbox.document(command, words, PATIENCE_S)


def measure() -> Sheet:
    program = options.programs(os.environ, ("TENFOLD",), "engines")["tenfold"]
    path = options.results(os.environ) / tables.JSON
    with Sandbox(program) as sandbox:
        results = Results(
            started_at=now(),
            machine=dataclasses.asdict(machine.describe()),
            versions=_versions(program),
        )
        bench = Bench(sandbox)
        for system in SYSTEMS:
            results.outcomes[system.title] = bench.outcome(system)
            record.write(path, results)
        results.sizes = bench.sizes()
        return record.finish(path, results, tables.sheet)


def render(path: Path) -> Sheet:
    return tables.sheet(recorded.read(path))


def _versions(tenfold: Path) -> dict[str, str]:
    commands = {
        "Tenfold": [str(tenfold), "--version"],
        "systemd": ["systemctl", "--version"],
        "Docker": ["dockerd", "--version"],
        "Docker Compose": ["sh", "-c", f"go version -m {COMPOSE} | grep -w mod"],
        "nginx": ["nginx", "-v"],
        "HAProxy": ["haproxy", "-v"],
    }
    return {name: version(command) for name, command in commands.items()}


if __name__ == "__main__":
    sys.exit(main("engines", measure, tables.JSON, render, DOCS))
