"""Memory of each generator with many users who mostly think."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from generators import environment, has_engines
from results import Footprint
from targets import Bench
from workloads import EPOLL, URING, Server

from rig.child import Child, ChildFailed

USERS = 20_000
# Files that are no connections: its own ones, and what it keeps free.
OTHER_FILES = 500
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
    users = min(USERS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - OTHER_FILES)
    command = [str(tenfold), "load", target.url, "--users", str(users), "--quiet"]
    command += ["--think", f"{THINK_S}s", "--duration", f"{DURATION_S}s"]
    command += ["--engine", engine] if engine else []
    output = bench.directory / "memory"
    cores = [bench.cores.measured]
    child = bench.child(Child(name, command, cores, output, environment(bench.directory)))
    give_up = time.monotonic() + PATIENCE_S
    while target.counts().connections < users and time.monotonic() < give_up:
        if child.ended():
            raise ChildFailed(f"{name} has ended; it said:\n{child.said()}")
        time.sleep(0.2)
    time.sleep(SETTLE_S)
    footprint = Footprint(target.counts().connections, child.memory().rss)
    child.kill()
    print(f"memory    {name:17} {footprint}", file=sys.stderr, flush=True)
    return footprint
