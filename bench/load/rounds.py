"""Rounds: every generator in turn at the same work, measured from outside while it is at it.

CPU comes from the kernel and requests from the server, over the same window: so what a generator
does before and after, and what it says of itself, does not count."""

from __future__ import annotations

import sys
import time

from generators import Generator, Job, environment
from results import Measure
from targets import Bench, Target
from workloads import Work

from rig.alternation import Alternation
from rig.child import Child
from rig.machine import Quiet

# All connections must be open by then; if they are not, the result says how many were.
PATIENCE_S = 20.0
# After that, caches are warm and programs compiled.
SETTLE_S = 0.7
LOOK_S = 0.05


class Rounds:
    def __init__(self, bench: Bench, window_s: float, alternation: Alternation) -> None:
        self._bench = bench
        self._window_s = window_s
        self._alternation = alternation

    def work(self, work: Work, generators: list[Generator]) -> dict[str, list[Measure]]:
        target = self._bench.target(work.server)
        return self._alternation.run(generators, lambda each: self._one(work, target, each))

    def _one(self, work: Work, target: Target, generator: Generator) -> Measure:
        job = Job(work, target.url, self._bench.directory)
        output = self._bench.directory / "generator"
        output.unlink(missing_ok=True)
        cores = [self._bench.cores.measured]
        before = target.counts()
        child = Child(
            generator.name, generator.command(job), cores, output, environment(job.directory)
        )
        self._bench.child(child)
        try:
            _await_connections(child, target, before.requests, work.connections)
            time.sleep(SETTLE_S)
            measure = self._window(child, target)
        finally:
            child.kill()
        _await_no_connections(target)
        print(f"{work.name:9} {generator.name:17} {measure}", file=sys.stderr, flush=True)
        return measure

    def _window(self, child: Child, target: Target) -> Measure:
        server = target.child
        quiet = Quiet({*child.tree(), *server.tree()})
        began, cpu, server_cpu = time.monotonic(), child.cpu_ns(), server.cpu_ns()
        counts = target.counts()
        time.sleep(self._window_s)
        elapsed = time.monotonic() - began
        cpu, server_cpu = child.cpu_ns() - cpu, server.cpu_ns() - server_cpu
        after, noise = target.counts(), quiet.noise()
        requests = after.requests - counts.requests
        return Measure(
            requests=requests,
            rate=requests / elapsed,
            cpu_us=cpu / 1e3 / max(1, requests),
            generator_cores=cpu / 1e9 / elapsed,
            server_cores=server_cpu / 1e9 / elapsed,
            connections=after.connections,
            rss=child.memory().rss,
            noise_cores=noise.others + noise.stolen,
            disturbed=noise.disturbed,
        )


def _await_connections(child: Child, target: Target, requests: int, connections: int) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not child.ended() and time.monotonic() < give_up:
        counts = target.counts()
        if counts.connections >= connections and counts.requests > requests:
            return
        time.sleep(LOOK_S)


def _await_no_connections(target: Target) -> None:
    """The next generator shall not pay for the last one's."""
    give_up = time.monotonic() + PATIENCE_S
    while target.counts().connections > 0 and time.monotonic() < give_up:
        time.sleep(LOOK_S)
