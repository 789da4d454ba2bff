"""Memory of each generator with many users who mostly think."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from generators import environment, has_engines
from results import Footprint
from targets import Bench
from works import EPOLL, URING, Server

from rig.child import Child

USERS = 20_000
THINK_S = 10
DURATION_S = 60
# After all are connected, each has had answers by then.
SETTLE_S = THINK_S + 1
PATIENCE_S = 40.0


def measure(bench: Bench, tenfold: Path) -> dict[str, Footprint]:
    engines = {EPOLL: "epoll", URING: "uring"} if has_engines(tenfold) else {EPOLL: ""}
    return {name: _one(bench, tenfold, name, engine) for name, engine in engines.items()}


def _one(bench: Bench, tenfold: Path, name: str, engine: str) -> Footprint:
    target = bench.target(Server.FILES)
    command = [str(tenfold), "load", target.url, "--users", str(USERS), "--quiet"]
    command += ["--think", f"{THINK_S}s", "--duration", f"{DURATION_S}s"]
    command += ["--engine", engine] if engine else []
    output = bench.directory / "memory"
    cores = [bench.cores.measured]
    child = bench.child(Child(name, command, cores, output, environment(bench.directory)))
    give_up = time.monotonic() + PATIENCE_S
    while target.counts().connections < USERS and time.monotonic() < give_up:
        time.sleep(0.2)
    time.sleep(SETTLE_S)
    footprint = Footprint(target.counts().connections, child.memory().rss)
    child.kill()
    print(f"memory    {name:17} {footprint}", file=sys.stderr, flush=True)
    return footprint
