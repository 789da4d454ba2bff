"""Rounds: every proxy in turn under the same work."""

from __future__ import annotations

import resource
import sys
import time
from statistics import median

import generators
from proxy_stage import ProxyStage
from proxies import Proxy
from results import Latency, Measure, WorkResults
from workloads import Work

from rig.alternation import Alternation
from rig.machine import Quiet

# Connections are opened and caches are warm after this.
WARM_UP_S = 1.0
# When in a window the memory is looked at.
MEMORY_AT = 0.7


class Rounds:
    def __init__(self, stage: ProxyStage, window_s: float, alternation: Alternation) -> None:
        self._stage = stage
        self._window_s = window_s
        self._alternation = alternation

    def work(self, work: Work, proxies: list[Proxy]) -> WorkResults:
        """Closed rounds, then open ones at half of the slowest proxy's capacity."""
        results = WorkResults()
        for proxy in proxies:
            self._closed(work, proxy, WARM_UP_S)
        results.measures = self._alternation.run(
            proxies, lambda proxy: self._closed(work, proxy, self._window_s), work.repeats
        )
        if work.open_loop:
            rates = [median(m.rate for m in all_of) for all_of in results.measures.values()]
            results.latencies = self._alternation.run(
                proxies, lambda proxy: self._open(work, proxy, min(rates) / 2)
            )
        return results

    def _closed(self, work: Work, proxy: Proxy, seconds: float) -> Measure:
        origin, child = self._stage.origin, proxy.child
        quiet = Quiet({*child.tree(), *origin.tree()})
        began, proxy_ns, origin_ns = time.monotonic(), child.cpu_ns(), origin.cpu_ns()
        generator_s = _children_s()
        user, system = child.split()
        run = generators.closed(work, proxy, self._stage.site, seconds)
        time.sleep(seconds * MEMORY_AT)
        memory = child.memory()
        load = run.finish()
        proxy_s = (child.cpu_ns() - proxy_ns) / 1e9
        generator_s = _children_s() - generator_s
        origin_s = (origin.cpu_ns() - origin_ns) / 1e9
        after_user, after_system = child.split()
        elapsed, noise = time.monotonic() - began, quiet.noise()
        used = max(1e-9, after_user - user + after_system - system)
        measure = Measure(
            requests=load.requests,
            errors=load.errors,
            rate=load.rate,
            cpu_us=proxy_s / max(1, load.requests) * 1e6,
            system_share=(after_system - system) / used,
            proxy_cores=proxy_s / elapsed,
            origin_cores=origin_s / elapsed,
            generator_cores=generator_s / elapsed,
            noise_cores=noise.others + noise.stolen,
            disturbed=noise.disturbed,
            log_lines=proxy.take_log_lines(),
            rss=memory.rss,
            pss=memory.pss,
            p50_ms=load.p50_ms,
            p99_ms=load.p99_ms,
        )
        _say(work, proxy, _described(measure))
        return measure

    def _open(self, work: Work, proxy: Proxy, rate: float) -> Latency:
        quiet = Quiet({*proxy.child.tree(), *self._stage.origin.tree()})
        url = f"http://127.0.0.1:{proxy.plain}{work.path}"
        load = generators.open_loop(url, rate, self._window_s, self._stage.site).finish()
        latency = Latency(
            rate, load.errors, load.p50_ms, load.p99_ms, load.verdict, quiet.noise().disturbed
        )
        said = f"at {rate:.0f}/s: p50 {_ms(load.p50_ms)}, p99 {_ms(load.p99_ms)}"
        _say(work, proxy, f"{said}{', disturbed' if latency.disturbed else ''}")
        return latency


def _children_s() -> float:
    """CPU seconds of the generators that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _described(measure: Measure) -> str:
    text = f"{measure.cpu_us:8.2f} us  {measure.rate:9.0f}/s  proxy {measure.proxy_cores:.2f}"
    text += f"  origin {measure.origin_cores:.2f}"
    text += f"  generator {measure.generator_cores:.2f}  noise {measure.noise_cores:.2f}"
    if measure.errors:
        text += f"  {measure.errors} errors"
    return text + ("  disturbed" if measure.disturbed else "")


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} ms"


def _say(work: Work, proxy: Proxy, text: str) -> None:
    print(f"{work.name:9} {proxy.name:8} {text}", file=sys.stderr, flush=True)
