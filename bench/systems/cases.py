"""The published systems: what was measured there, and what of it must be so here.

Absolute values are the hardware's. What counts is how a row compares with the first of its case, and
what the plan concludes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Row:
    """So many instances under a workload; arguments that `plan` and `load` both take."""

    instances: int
    workload: tuple[str, ...]
    # Requests a second and times, as they were published.
    published: str
    # Throughput as a multiple of the case's first row: published, and what is the same here.
    shape: float
    least: float
    most: float


@dataclass(frozen=True)
class Answer:
    """What a plan for a workload must say."""

    workload: tuple[str, ...]
    finding: str
    # The recommended count.
    least: int
    most: int
    published: str


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    folder: str
    rows: tuple[Row, ...]
    answer: Answer
    path: str = "/"
    # Of `plan` and `load`.
    request: tuple[str, ...] = ()
    # Of `plan` and `up`.
    app: tuple[str, ...] = ()
    # Of `load`.
    load: tuple[str, ...] = ()
    # How long the same load runs before: a plan, too, measures what has compiled its code.
    warm_up: str | None = None
    # Arrivals, as a multiple of what one instance answers here: how fast a core is must not decide.
    overload: float | None = None

    def at(self, rate: float | None) -> Case:
        """The same with so many arrivals a second, where it is not said in the case."""
        if rate is None:
            return self
        workload = ("--rate", f"{rate:g}")
        rows = tuple(replace(row, workload=workload) for row in self.rows)
        return replace(self, rows=rows, answer=replace(self.answer, workload=workload))


def users(count: int, think: str = "0s") -> tuple[str, ...]:
    return ("--users", str(count), "--think", think)


def _near(instances: int, workload: tuple[str, ...], published: str, shape: float) -> Row:
    return Row(instances, workload, published, shape, 0.8 * shape, 1.2 * shape)


def _threads(name: str, path: str, connections: int, one: str, four: str, shape: float) -> Case:
    """What four instances of the multi-threaded API lose depends on the cores; that they lose does not."""
    everybody = users(connections)
    return Case(
        name=name,
        title=f"5. The multi-threaded API: {path}, {connections} connections",
        folder="examples/threads",
        path=path,
        load=("--duration", "10s"),
        # Four JVMs on two cores compile what serves /products for 40 s.
        warm_up="45s",
        rows=(Row(1, everybody, one, 1, 1, 1), Row(4, everybody, four, shape, 0, 0.95)),
        answer=Answer(everybody, "oversubscribed", 1, 1, "do not add instances on this machine"),
    )


FORM = (
    *("--method", "POST", "--body", "fib=100&algorithm=iterative"),
    *("--header", "Content-Type: application/x-www-form-urlencoded"),
)
# Between tester and server there was a network of about 30 ms, which is a pause as good as any.
NETWORK = "30ms"

CASES = (
    Case(
        name="fibscale",
        title="1. FibScale: one request at a time, then three instances",
        folder="examples/fibscale",
        request=FORM,
        load=("--duration", "30s"),
        rows=(
            _near(1, users(1, "1s"), "0.5/s, 1 s", 1),
            _near(1, users(2, "1s"), "about 1/s, 1 s and a little", 2),
            _near(1, users(10, "1s"), "1/s, about 9 s", 2),
            _near(3, users(10, "1s"), "3/s, about a third", 6),
        ),
        answer=Answer(users(10, "1s"), "serialized", 3, 5, "instances add up"),
    ),
    Case(
        name="search",
        title="2. Product search: a CPU-bound server on two cores",
        folder="examples/search",
        path="/products/search",
        app=("--ready-path", "/"),
        load=("--duration", "30s", "--timeout", "10s"),
        rows=(
            Row(1, ("--rate", "10"), "131 of 300, mean 5 s", 1, 1, 1),
            Row(2, ("--rate", "10"), "300 of 300, p99 under 600 ms", 2.3, 1.3, 2.5),
        ),
        answer=Answer(("--rate", "10"), "cpu_bound", 2, 2, "one for each core"),
        overload=1.5,
    ),
    Case(
        name="blocking",
        title="4. A blocking backend: the throughput plateau",
        folder="examples/blocking",
        load=("--duration", "8s"),
        rows=(
            _near(1, users(1, NETWORK), "20/s, 50 ms", 1),
            _near(1, users(5, NETWORK), "45/s, 100 ms", 2.25),
            _near(1, users(10, NETWORK), "47/s, 170 ms", 2.35),
            _near(10, users(10, NETWORK), "200/s, 50 ms", 10),
            _near(10, users(50, NETWORK), "470/s, 100 ms", 23.5),
            _near(10, users(100, NETWORK), "480/s, 50 - 150 ms", 24),
            Row(30, users(200, NETWORK), "over 1000/s", 50, 50, 100),
        ),
        answer=Answer(users(100, NETWORK), "serialized", 14, 20, "ten give ten times, the CPU idles"),
    ),
    _threads("threads-api", "/api", 100, "6308 - 7076/s, 14 - 16 ms", "4438 - 4668/s, 22 - 24 ms", 0.68),
    _threads("threads-api-400", "/api", 400, "6518/s", "4381/s", 0.67),
    _threads(
        "threads-products",
        "/products",
        400,
        "1708 - 1857/s, 214 - 233 ms",
        "783 - 1346/s, 324 - 385 ms",
        0.6,
    ),
)
