"""`make bench-drivers`: what an instance costs as a process, a service and a container, and behind other balancers."""

from __future__ import annotations

import dataclasses
import os
import random
import sys
from pathlib import Path
from typing import Any

import results as recorded
import tables
from contestants import CONTESTANTS, IMAGE, PROCESS, Contestant
from results import Results, Trial

from rig import machine, options, record
from rig.alternation import Alternation, Spare
from rig.child import ChildFailed
from rig.machine import Quiet
from rig.program import main, now
from rig.sandbox import Sandbox
from rig.stage import version
from rig.table import Sheet

# Requests a second: much less than any of them can serve.
RATE = 1000
# Answers without work.
PATH = "/light"
WARM_UP_S = 1.0
READY_S = 60
# All of it takes 5 minutes undisturbed, and 7 at most.
REPEATED_S = 2 * 60


class Bench:
    def __init__(self, sandbox: Sandbox, app: str, window_s: float) -> None:
        self._sandbox = sandbox
        self._app = app
        self._window_s = window_s

    def trial(self, contestant: Contestant) -> Trial:
        """Starts one instance, loads it, and ends it."""
        words = ["-n", "1", *contestant.words(self._app)]
        with self._sandbox.serving(words, READY_S) as (address, start_s):
            self._load(address, WARM_UP_S)
            trial = self._measure(contestant, address, start_s)
        print(f"{contestant.name:26} {_described(trial)}", file=sys.stderr, flush=True)
        return trial

    def _measure(self, contestant: Contestant, address: str, start_s: float) -> Trial:
        quiet = Quiet(self._sandbox.pids())
        before = self._sandbox.cpu_ns(without_docker=not contestant.is_container)
        load = self._load(address, self._window_s)
        used_ns = self._sandbox.used_ns(before, without_docker=not contestant.is_container)
        noise = quiet.noise()
        return Trial(
            start_ms=start_s * 1e3,
            requests=load["requests"],
            errors=load["errors"],
            cpu_us=used_ns / 1e3 / max(1, load["requests"]),
            p50_ms=load["response_ms"]["p50"],
            p99_ms=load["response_ms"]["p99"],
            verdict=load["verdict"],
            noise_cores=noise.others + noise.stolen,
            disturbed=noise.disturbed,
        )

    def _load(self, address: str, seconds: float) -> dict[str, Any]:
        words = [f"http://{address}{PATH}", "--rate", str(RATE), "--duration", f"{seconds:g}s"]
        return self._sandbox.document("load", words, seconds + READY_S)


def measure() -> Sheet:
    programs = options.programs(os.environ, ("TENFOLD", "APP"), "bench-drivers")
    rounds = int(options.number(os.environ, "ROUNDS", 5))
    window_s = options.number(os.environ, "WINDOW", 5)
    seed = int(options.number(os.environ, "SEED", random.SystemRandom().randrange(1, 1_000_000)))
    path = options.results(os.environ) / tables.JSON
    with Sandbox(programs["tenfold"]) as sandbox:
        app = sandbox.take(programs["app"], "app")
        if sandbox.docker:
            sandbox.make_image(IMAGE, [Path(app)], ['CMD ["/app"]', "EXPOSE 4500"])
        results = Results(
            started_at=now(),
            machine=dataclasses.asdict(machine.describe()),
            versions=_versions(programs["tenfold"]),
            seed=seed,
            rounds=rounds,
            window_s=window_s,
            rate=RATE,
        )
        bench = Bench(sandbox, app, window_s)
        able = [each for each in CONTESTANTS if _is_able(bench, each, results)]
        results.trials = Alternation(rounds, seed, Spare(REPEATED_S)).run(able, bench.trial)
        return record.finish(path, results, tables.sheet)


def render(path: Path) -> Sheet:
    return tables.sheet(recorded.read(path))


def _is_able(bench: Bench, contestant: Contestant, results: Results) -> bool:
    """Whether it can be measured, by a trial that does not count."""
    try:
        bench.trial(contestant)
    except ChildFailed as error:
        if contestant.name == PROCESS:
            raise
        said = [line for line in str(error).splitlines() if line.strip()]
        why = next((line for line in said if line.startswith(("error: ", "tenfold: "))), said[0])
        results.absent[contestant.name] = why.partition(": ")[2] or why
        print(f"{contestant.name:26} not measured: {why}", file=sys.stderr, flush=True)
        return False
    return True


def _versions(tenfold: Path) -> dict[str, str]:
    commands = {
        "Tenfold": [str(tenfold), "--version"],
        "systemd": ["systemctl", "--version"],
        "Docker": ["dockerd", "--version"],
        "nginx": ["nginx", "-v"],
        "HAProxy": ["haproxy", "-v"],
    }
    return {name: version(command, r"(\d+(?:\.\d+)+|\d+)") for name, command in commands.items()}


def _described(trial: Trial) -> str:
    text = f"ready {trial.start_ms:6.0f} ms  {trial.cpu_us:7.1f} us  p99 {trial.p99_ms} ms"
    text += f"  {trial.verdict}  noise {trial.noise_cores:.2f}"
    if trial.errors:
        text += f"  {trial.errors} errors"
    return text + ("  disturbed" if trial.disturbed else "")


if __name__ == "__main__":
    sys.exit(main("bench-drivers", measure, tables.JSON, render))
