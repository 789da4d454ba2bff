"""The tail: what each way of choosing makes of four instances that serve one request at a time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import central_queue
import generators
from proxy_stage import ProxyStage
from proxies import CADDY, HAPROXY, NGINX, TENFOLD, Kind, Programs, filled, run_command
from results import TailRun

from rig.child import Child, free_ports
from rig.machine import Quiet

RATE = 280.0
INSTANCES = 4


@dataclass(frozen=True)
class Balancer:
    """A proxy with a policy."""

    title: str
    kind: Kind
    template: str
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Setup:
    """A balancer that runs in front of four instances of its own."""

    balancer: Balancer
    port: int
    tree: frozenset[int]


OURS = f"{TENFOLD} queue, 1 slot"
NGINX_LEAST_CONN = "nginx least_conn"
HAPROXY_MAXCONN = "HAProxy leastconn, maxconn 1"

BALANCERS = (
    Balancer("nginx round robin", NGINX, "nginx-tail.conf", (("method", ""),)),
    Balancer(NGINX_LEAST_CONN, NGINX, "nginx-tail.conf", (("method", "least_conn;"),)),
    Balancer("nginx random two", NGINX, "nginx-tail.conf", (("method", "random two;"),)),
    Balancer("HAProxy leastconn", HAPROXY, "haproxy-tail.cfg", (("maxconn", ""),)),
    Balancer(HAPROXY_MAXCONN, HAPROXY, "haproxy-tail.cfg", (("maxconn", "maxconn 1"),)),
    Balancer("Caddy least_conn", CADDY, "Caddyfile-tail"),
    Balancer(OURS, Kind(TENFOLD, (), "", ""), "tenfold-tail.toml"),
)


def measure(
    stage: ProxyStage, programs: Programs, rounds: int, seconds: float
) -> dict[str, list[TailRun]]:
    """All balancers at once: each has instances of its own that wait and do not work, so they do
    not disturb each other, and share what disturbs the machine."""
    results: dict[str, list[TailRun]] = {balancer.title: [] for balancer in BALANCERS}
    for seed in range(1, rounds + 1):
        for title, run in _round(stage, programs, seed, seconds).items():
            results[title].append(run)
            print(f"tail      {title:28} {run}", file=sys.stderr, flush=True)
    return results


def _round(stage: ProxyStage, programs: Programs, seed: int, seconds: float) -> dict[str, TailRun]:
    ideal = central_queue.simulate(_arrivals(programs, seed, seconds), INSTANCES, seed)
    children: list[Child] = []
    try:
        setups = [_set_up(stage, programs, balancer, seed, children) for balancer in BALANCERS]
        quiet = Quiet(set().union(*(setup.tree for setup in setups)))
        options = ("--poisson", "--seed", str(seed))
        runs = [
            (
                setup.balancer.title,
                generators.open_loop(
                    f"http://127.0.0.1:{setup.port}/", RATE, seconds, stage.site, *options
                ),
            )
            for setup in setups
        ]
        loads = {title: run.finish() for title, run in runs}
        disturbed = quiet.noise().disturbed
    finally:
        for child in reversed(children):
            child.stop()
    return {
        title: TailRun(
            load.errors,
            load.p50_ms,
            load.p95_ms,
            load.p99_ms,
            load.p999_ms,
            central_queue.quantiles(ideal, load.between),
            load.verdict,
            disturbed,
        )
        for title, load in loads.items()
    }


def _arrivals(programs: Programs, seed: int, seconds: float) -> list[float]:
    """When the generator means to send; seconds since its beginning."""
    command = [str(programs.arrivals), f"{RATE:g}", f"{seconds:g}", str(seed)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [float(line) for line in said.split()]


def _set_up(
    stage: ProxyStage, programs: Programs, balancer: Balancer, seed: int, children: list[Child]
) -> Setup:
    port, *ports = free_ports(1 + INSTANCES)
    instances = [f"127.0.0.1:{each}" for each in ports]
    output = stage.directory / f"tail-{port}.out"
    command = [str(programs.origin), "instances", str(seed), *instances]
    app = stage.child(Child("the instances", command, stage.cores.others, output))
    children.append(app)
    app.await_ports(ports)
    directory = stage.directory / f"tail-{port}"
    directory.mkdir()
    values = {"dir": str(directory), "plain": str(port), **dict(balancer.settings)}
    values |= {f"instance_{n}": each for n, each in enumerate(instances, 1)}
    configuration = directory / balancer.template
    configuration.write_text(filled(balancer.template, values, frozenset()))
    command, environment = run_command(balancer.kind, configuration, programs)
    proxy = Child(balancer.title, command, [stage.cores.measured], output, environment)
    children.append(stage.child(proxy))
    proxy.await_ports([port])
    return Setup(balancer, port, frozenset({*app.tree(), *proxy.tree()}))
