"""`make bench-page`: what the live page costs the server, the browser, and a plan that it watches."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import results as recorded
import tables
from results import Plan, Results, Server, Tab

from rig import machine, options, record
from rig.child import Child, ChildFailed, free_ports
from rig.machine import Quiet
from rig.program import main, now
from rig.stage import version
from rig.table import Sheet

INSTANCES = 1000
# Requests a second to all of them together.
RATE = 200
READERS = (0, 1, 10, 32)
PLANS = 3
READY_S = 60
# A browser that has just begun still does this and that.
SETTLE_S = 3
T = TypeVar("T")

CORES = sorted(os.sched_getaffinity(0))
TABS = options.ROOT / "web" / "bench" / "tabs.mjs"

# Servers of one process: they have to be many, not fast.
SERVERS = """
const http = require('node:http');
for (const port of process.argv.slice(1)) {
  http.createServer((_, answer) => setTimeout(() => answer.end('Hello'), 5 + (port % 10))).listen(port, '127.0.0.1');
}
"""


class Readers:
    """Programs that read the events as a page does."""

    def __init__(self, admin: str, count: int) -> None:
        self.bytes = 0
        self._open = True
        self._count = count
        for _ in range(count):
            threading.Thread(target=self._read, args=(admin,), daemon=True).start()

    def _read(self, admin: str) -> None:
        with urllib.request.urlopen(f"http://{admin}/api/events") as events:
            while self._open and (part := events.read1(65536)):
                self.bytes += len(part)

    def per_second(self, read: int, seconds: float) -> float:
        return read / seconds / self._count if self._count else 0.0

    def close(self) -> None:
        self._open = False


class Bench:
    def __init__(self, tenfold: Path, home: Path, window_s: float) -> None:
        self._tenfold = tenfold
        self._home = home
        self._window_s = window_s
        self._environment = {"TENFOLD_STATE_DIR": str(home / "state")}

    @contextlib.contextmanager
    def _running(self, name: str, words: list[str]) -> Iterator[Child]:
        child = Child(name, words, CORES, self._home / f"{name}.txt", self._environment)
        try:
            yield child
        finally:
            child.stop()

    @contextlib.contextmanager
    def balanced(self, servers: list[int], admin: str | None) -> Iterator[Child]:
        """The balancer before all servers, under load."""
        (port,) = free_ports(1)
        words = [str(self._tenfold), "balance", "--listen", f"127.0.0.1:{port}"]
        words += [word for server in servers for word in ("--to", f"127.0.0.1:{server}")]
        words += ["--policy", "round_robin", *(["--admin", admin] if admin else [])]
        load = [str(self._tenfold), "load", f"http://127.0.0.1:{port}/", "--rate", str(RATE), "--quiet"]
        with self._running("balance", words) as balance:
            balance.await_ports([port])
            with self._running("load", [*load, "--duration", "1h"]):
                yield balance

    def server(self, servers: list[int], count: int | None) -> tuple[Server, int]:
        """What Tenfold uses with so many readers, and how much memory it has."""
        (port,) = free_ports(1)
        admin = f"127.0.0.1:{port}"
        with self.balanced(servers, None if count is None else admin) as balance:
            threading.Event().wait(5)
            readers = Readers(admin, count or 0)
            threading.Event().wait(2)
            quiet = Quiet(set(balance.tree()))
            before, read = balance.cpu_ns(), readers.bytes
            threading.Event().wait(self._window_s)
            used, read = balance.cpu_ns() - before, readers.bytes - read
            disturbed = quiet.noise().stolen > machine.DISTURBED_CORES
            memory = balance.memory().rss
            readers.close()
        name = "no live page" if count is None else f"{count} pages" if count != 1 else "1 page"
        cores = used / 1e9 / self._window_s
        return Server(name, cores, readers.per_second(read, self._window_s), disturbed), memory

    def tab(self, admin: str, view: str, hour: bool) -> Tab:
        """The page in a browser."""
        words = ["node", str(TABS), f"http://{admin}/#/{view}", f"{self._window_s:g}"]
        said = subprocess.run(
            [*words, *(["hour"] if hour else [])],
            cwd=TABS.parent,
            capture_output=True,
            text=True,
            timeout=self._window_s + READY_S,
        )
        if said.returncode != 0:
            raise ChildFailed(f"the browser failed:\n{said.stderr.strip()}")
        name = view.capitalize() + (", after an hour" if hour else "")
        return Tab(view=name, **json.loads(said.stdout))

    def plan(self, with_page: bool) -> Plan:
        """A plan of the bundled app, with its page open or without one. The browser runs before."""
        (port,) = free_ports(1)
        admin = f"127.0.0.1:{port}"
        to = self._home / "plan.json"
        to.unlink(missing_ok=True)
        words = [str(self._tenfold), "plan", "--rate", "150", "--p95", "100ms", "--quiet", "--json", str(to)]
        words += [*(["--admin", admin] if with_page else []), "--", str(self._tenfold), "demo-app"]
        with contextlib.ExitStack() as stack:
            if with_page:
                (self._home / "browser.txt").unlink(missing_ok=True)
                wanted = ["node", str(TABS), f"http://{admin}/#/plan", "open"]
                browser = stack.enter_context(self._running("browser", wanted))
                browser.await_saying("the browser is open", READY_S)
                threading.Event().wait(SETTLE_S)
            plan = stack.enter_context(self._running("plan", words))
            if with_page:
                browser.await_saying("the page is open", READY_S)
            plan.finish(5 * READY_S)
        document = json.loads(to.read_text())
        return planned("open in a browser" if with_page else "not open", document)


def planned(page: str, document: dict[str, Any]) -> Plan:
    answer = document["recommendation"] or {}
    first = document["curve"][0]["predicted"] if document["curve"] else None
    width = (first["high"] - first["low"]) / first["throughput"] if first and first["high"] else None
    counts = (answer.get("instances"), answer.get("low"), answer.get("high"))
    return Plan(page, *counts, document["verdict"], width)


def measure() -> Sheet:
    tenfold = options.programs(os.environ, ("TENFOLD",), "bench-page")["tenfold"]
    window_s = options.number(os.environ, "WINDOW", 30)
    path = options.results(os.environ) / tables.JSON
    results = Results(
        started_at=now(),
        machine=dataclasses.asdict(machine.describe()),
        versions={"Tenfold": version([str(tenfold), "--version"], r"(\d+(?:\.\d+)+)"), "Chromium": chromium()},
        instances=INSTANCES,
        rate=RATE,
        window_s=window_s,
        optimised="debug" not in tenfold.parts,
        load_average=os.getloadavg()[0],
    )
    home = Path(tempfile.mkdtemp(prefix="tenfold-bench-"))
    try:
        bench = Bench(tenfold.absolute(), home, window_s)
        servers = free_ports(INSTANCES)
        origin = Child("servers", ["node", "-e", SERVERS, *map(str, servers)], CORES, home / "servers.txt")
        try:
            origin.await_ports(servers)
            fill(bench, results, servers)
        finally:
            origin.stop()
        for _ in range(int(options.number(os.environ, "PLANS", PLANS))):
            results.plans += [tell(bench.plan(with_page=False)), tell(bench.plan(with_page=True))]
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return record.finish(path, results, tables.sheet)


def fill(bench: Bench, results: Results, servers: list[int]) -> None:
    for count in (None, *READERS):
        server, memory = bench.server(servers, count)
        results.servers.append(tell(server))
        results.memory_bytes[server.readers] = memory
    (port,) = free_ports(1)
    admin = f"127.0.0.1:{port}"
    with bench.balanced(servers, admin):
        threading.Event().wait(10)
        for view, hour in (("run", False), ("run", True), ("instances", False)):
            results.tabs.append(tell(bench.tab(admin, view, hour)))


def tell(measured: T) -> T:
    print(measured, file=sys.stderr, flush=True)
    return measured


def chromium() -> str:
    return version([os.environ.get("CHROMIUM", "/usr/bin/chromium"), "--version"], r"(\d+(?:\.\d+)+)")


def render(path: Path) -> Sheet:
    return tables.sheet(recorded.read(path))


if __name__ == "__main__":
    sys.exit(main("bench-page", measure, tables.JSON, render))
