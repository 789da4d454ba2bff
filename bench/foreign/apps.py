"""The real stacks that are planned and swept, and what each must be found to be limited by."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rig.options import ROOT

# A percentile of fewer requests is chance.
LEAST_REQUESTS = 200
HOME = ROOT / "tests" / "foreign"


@dataclass(frozen=True)
class App:
    # Its folder, with a tenfold.toml.
    name: str
    stack: str
    # Kinds of finding of which one must come first: more where two words for it are as true.
    limits: tuple[str, ...]
    # Why it must be so.
    why: str
    # Every count from 1 to this one is measured: one more than is needed, at least.
    most: int
    # Requests that an instance serves at once by its own structure; None where any number.
    slots: int | None
    # How long the first sweep's load runs before anything counts.
    warm_up_s: float = 5
    # No plan of it is looked at while the model is worked on.
    is_held_out: bool = False
    # The cores that an instance can use, if they limit it before all else. How fast these are decides whether the
    # workload comes near: if an instance uses less of them than leaves room, `headroom` is right, too.
    cores: float | None = None

    @property
    def config(self) -> Path:
        return HOME / self.name / "tenfold.toml"

    @cached_property
    def _file(self) -> dict[str, Any]:
        return tomllib.loads(self.config.read_text())

    @property
    def path(self) -> str:
        return str(self._file["workload"]["path"])

    @property
    def users(self) -> int | None:
        """Who wait for their answers; None where requests arrive at a rate."""
        users = self._file["workload"].get("users")
        return int(users) if users else None

    @property
    def generator_arguments(self) -> list[str]:
        """The workload of its file, as the generator takes it."""
        workload = self._file["workload"]
        names = [name for name in ("rate", "users", "think") if name in workload]
        return [word for name in names for word in (f"-{name}", str(workload[name]))]

    def measured_s(self, asked_s: float) -> float:
        """How long each count is measured: as asked, or until there are enough of few requests."""
        rate = self._file["workload"].get("rate")
        return max(asked_s, LEAST_REQUESTS / rate) if rate else asked_s

    @property
    def workload(self) -> str:
        """The same, and the goal, for people."""
        workload, goal = self._file["workload"], self._file["goal"]
        if "rate" in workload:
            asked = f"{workload['rate']}/s"
        else:
            asked = f"{workload['users']} users, think {workload.get('think', '0s')}"
        return f"{asked}, p95 {goal['p95']}"


# Half of them are held out. The workloads were chosen from what one request takes, so that no count lies at
# the edge of its goal.
APPS = (
    App(
        "gunicorn",
        "Flask, gunicorn sync",
        ("serialized",),
        "one worker waits 15 ms for a carrier, one request after the other",
        most=4,
        slots=1,
        is_held_out=True,
    ),
    App(
        "gthread",
        "Flask, gunicorn with 4 threads",
        ("waiting",),
        "four threads wait 20 ms each, beside 1 or 2 ms of CPU",
        most=3,
        slots=4,
    ),
    App(
        "fastapi",
        "FastAPI, uvicorn",
        ("cpu_bound",),
        "the event loop waits for any number at once, but joins and validates on one thread",
        most=3,
        slots=None,
        is_held_out=True,
        cores=1,
    ),
    App(
        "flask",
        "Flask, its own server",
        ("cpu_bound",),
        "a thread a request, and one interpreter's lock for all of them",
        most=3,
        slots=None,
        cores=1,
    ),
    App(
        "django",
        "Django, SQLite, gunicorn sync",
        ("cpu_bound",),
        "queries in the process and templates: one worker computes all of the time",
        most=3,
        slots=1,
        is_held_out=True,
        cores=1,
    ),
    App(
        "express",
        "Express",
        ("headroom",),
        "ten requests a second of a millisecond or two",
        most=2,
        slots=None,
    ),
    App(
        "fastify",
        "Fastify",
        ("cpu_bound",),
        "JavaScript's one thread sorts for every request",
        most=3,
        slots=None,
        is_held_out=True,
        cores=1,
    ),
    App(
        "go-sqlite",
        "Go, SQLite",
        ("oversubscribed", "cpu_bound"),
        "one process computes on every core: the cores are the limit, and a second instance brings none",
        most=3,
        slots=None,
    ),
    App(
        "php-fpm",
        "PHP, php-fpm behind its own nginx",
        ("connection_limited", "waiting"),
        "three workers wait 20 ms each; nginx lets in more, which wait for one of the three",
        most=3,
        slots=3,
        is_held_out=True,
    ),
    App(
        "php",
        "PHP, its own server, SQLite",
        ("serialized",),
        "one process waits 12 ms for a warehouse, one request after the other",
        most=3,
        slots=1,
    ),
    App(
        "puma-cluster",
        "Sinatra, Puma with 2 workers",
        ("oversubscribed", "cpu_bound"),
        "two processes compute on both cores: a second instance brings no third",
        most=3,
        slots=6,
        is_held_out=True,
        cores=2,
    ),
    App(
        "puma",
        "Sinatra, Puma",
        ("waiting", "connection_limited"),
        "five threads wait 20 ms each; Puma reads ahead of them, which looks like a pool",
        most=3,
        slots=5,
    ),
    App(
        "javalin",
        "Java, Javalin",
        ("headroom",),
        "once it is compiled, a request takes a millisecond of two cores",
        most=2,
        slots=None,
        warm_up_s=30,
        is_held_out=True,
    ),
    App(
        "jdk-pool",
        "Java, the JDK's server",
        ("waiting",),
        "eight threads wait 20 ms each, beside 1 or 2 ms of CPU",
        most=3,
        slots=8,
        warm_up_s=20,
    ),
    App(
        "node-cluster",
        "Node.js, a cluster of 2",
        ("headroom",),
        "two processes, which the rate keeps busy for less than half of the time",
        most=2,
        slots=None,
        is_held_out=True,
    ),
    App(
        "flask-pool",
        "Flask, PostgreSQL",
        ("connection_limited",),
        "sixteen threads share five connections, which are busy for 30 ms a request",
        most=3,
        slots=5,
    ),
    App(
        "redis",
        "Node.js, Redis",
        ("headroom",),
        "eighty requests a second of half a millisecond",
        most=2,
        slots=None,
        is_held_out=True,
    ),
    App(
        "axum",
        "Rust, axum",
        ("headroom",),
        "compiled code, and a quarter of what two cores can do",
        most=2,
        slots=None,
    ),
)
