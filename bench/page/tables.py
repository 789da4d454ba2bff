"""The tables of the results."""

from __future__ import annotations

from results import Results

from rig import machine
from rig.table import Sheet, Table, milliseconds

JSON = "page.json"
# A machine that does nothing else stays below.
BUSY = 0.5


def sheet(results: Results) -> Sheet:
    return Sheet(_conditions(results), [_servers(results), _tabs(results), _plans(results)], [])


def _conditions(results: Results) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    build = "" if results.optimised else "Tenfold was built without optimisation, and its CPU is an upper bound. "
    busy = ""
    if results.load_average > BUSY:
        busy = (
            " Other work wanted the cores, so times and CPU are too high, and no goal of theirs is judged by them. "
            "Bytes, nodes and heap do not depend on it."
        )
    return (
        machine.sentence(results.machine, results.started_at, results.finished_at)
        + f"{versions}. {results.instances:,} servers of one process behind `tenfold balance`, "
        f"{results.rate:g} requests/s to all of them together, windows of {results.window_s:g} s. "
        f"{build}The load average before was {results.load_average:.1f}.{busy}"
    )


def _servers(results: Results) -> Table:
    base = results.servers[0].cores
    rows = [
        [
            each.readers,
            _percent(each.cores),
            _percent(each.cores - base) if at else "",
            f"{each.bytes_per_s / 1e3:.1f}" if each.bytes_per_s else "",
            f"{results.memory_bytes[each.readers] / 1e6:.0f}",
        ]
        for at, each in enumerate(results.servers)
    ]
    head = ["Tenfold with", "of a core, %", "more than without, %", "each stream, kB/s", "memory, MB"]
    note = (
        "The process that balances and serves the page; programs read the events in place of browsers. The goal is at "
        "most 1 % of a core for one page, 2 % for ten, and 20 kB/s a stream at the worst. With the live page, it looks "
        "at every server once a second, whoever reads."
    )
    return Table("What the live page costs the server", head, rows, note)


def _tabs(results: Results) -> Table:
    rows = [
        [
            each.view,
            f"{each.painted_ms:.0f}",
            f"{each.first_bytes / 1e3:.0f}",
            _percent(each.cores),
            f"{each.longest_task_ms:.0f}" if each.longest_task_ms else "< 50",
            f"{each.bytes_per_s / 1e3:.1f}",
            f"{each.dom_nodes:,}",
            f"{each.heap_bytes / 1e6:.0f}",
        ]
        for each in results.tabs
    ]
    head = ["view", "first chart, ms", "loaded, kB", "of a core, %", "longest task, ms"]
    head += ["stream, kB/s", "DOM nodes", "heap, MB"]
    note = (
        "One tab of Chromium without a graphics processor, 1120 x 900. After an hour: the history of the server is "
        "replaced by one of a whole hour. The goal is the first chart within 1 s, at most 5 % of a core, no task of "
        "more than 50 ms, 3,000 nodes and 60 MB. What is loaded counts before compression."
    )
    return Table("What the live page costs the browser", head, rows, note)


def _plans(results: Results) -> Table:
    rows = [
        [
            each.page,
            "none" if each.answer is None else str(each.answer),
            "-" if each.low is None else f"{each.low} to {each.high}",
            "-" if each.width is None else f"{100 * each.width:.1f}",
            each.verdict,
        ]
        for each in results.plans
    ]
    head = ["page", "instances", "the model allows", "width of one instance, %", "verdict"]
    note = (
        "Plans of the bundled app in turn. The width is that of the interval of what one instance does, over its "
        "middle. An open page gets a tick every five seconds and no rows while a plan measures."
    )
    return Table("A plan with its page open in a browser", head, rows, note)


def _percent(cores: float) -> str:
    return milliseconds(max(0.0, 100 * cores))
