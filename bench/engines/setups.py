"""The published systems in the engines that they were published in, and what of each is measured."""

from __future__ import annotations

from dataclasses import dataclass

from systems.cases import CASES, Case, Row

NOTHING = "nothing"
STATIC = "static"


@dataclass(frozen=True)
class Setup:
    """How instances are run: arguments of `plan` and `up`."""

    name: str
    words: tuple[str, ...]
    is_container: bool = False


@dataclass(frozen=True)
class System:
    """A published case, run as processes behind Tenfold's own queue, and as it was published."""

    title: str
    case: Case
    # Of the case's rows.
    rows: tuple[Row, ...]
    setups: tuple[Setup, ...]
    # Arguments of `plan`.
    goal: tuple[str, ...] = ()

    def workload(self, row: Row, rate: float | None) -> tuple[str, ...]:
        """The row's, with so many arrivals a second where it is not said in the case."""
        return ("--rate", f"{rate:g}") if rate else row.workload


def _case(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def _compose(stack: str) -> tuple[str, ...]:
    return ("--compose", f"{{home}}/stacks/{stack}.yaml", "--service", "web", "--publish")


FIBSCALE, SEARCH, PRODUCTS = _case("fibscale"), _case("search"), _case("threads-products")

SYSTEMS = (
    System(
        "1. FibScale: systemd's template units behind nginx, then containers",
        FIBSCALE,
        (FIBSCALE.rows[0], *FIBSCALE.rows[2:]),
        (
            Setup("units behind nginx", ("--unit", "fibscale@", "--balancer", "nginx")),
            Setup("units behind HAProxy", ("--unit", "fibscale@", "--balancer", "haproxy")),
            Setup("containers of half a core", _compose("fibscale"), is_container=True),
        ),
        goal=("--p95", "2s"),
    ),
    System(
        "2. Product search: containers with published ports, of one core each, behind nginx",
        SEARCH,
        SEARCH.rows,
        (Setup("containers behind nginx", (*_compose("search"), "--balancer", "nginx"), is_container=True),),
        goal=("--p95", "600ms"),
    ),
    System(
        "5. The multi-threaded API: a Compose stack with its database, behind nginx",
        PRODUCTS,
        PRODUCTS.rows,
        (Setup("stack behind nginx", (*_compose("threads"), "--balancer", "nginx"), is_container=True),),
        goal=("--max-instances", "4"),
    ),
)

# System 3 has sizes instead of rows.
SIZES = Setup("containers", ("--image", STATIC, "--publish"), is_container=True)
