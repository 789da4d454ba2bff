"""The load generators: what they are told, and what they say."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass

from proxies import HERE, Proxy, Site
from workloads import Tool, Work

from rig.program import GeneratorFailed
from rig.stage import OPENSSL


@dataclass(frozen=True)
class Run:
    """A generator at work."""

    process: subprocess.Popen[str]
    tool: Tool

    def finish(self) -> Load:
        said, complained = self.process.communicate()
        try:
            return _PARSERS[self.tool](said)
        except (ValueError, KeyError, AttributeError) as error:
            raise GeneratorFailed(
                f"{self.tool.value} ended with {self.process.returncode}: {said}{complained}"
            ) from error


@dataclass(frozen=True)
class Load:
    """What a generator counted."""

    requests: int
    errors: int
    # Requests a second.
    rate: float
    # From the intended send time; of fixed rates only.
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    verdict: str | None = None
    # What has ended then is counted; seconds since the load's beginning. Of fixed rates only.
    between: tuple[float, float] | None = None


def closed(work: Work, proxy: Proxy, site: Site, seconds: float) -> Run:
    """Users who ask again as soon as they have their answer, for so long."""
    url = f"http://127.0.0.1:{proxy.plain}{work.path}"
    secure = f"https://127.0.0.1:{proxy.tls}{work.path}"
    if work.rate is not None:
        return open_loop(url, work.rate, seconds, site, "--no-keep-alive")
    if work.tool is Tool.H2LOAD:
        command = ["h2load", "-t1", f"-c{work.connections}", f"-m{work.streams}"]
        command += [f"-D{seconds:g}", "--warm-up-time=0", secure]
    else:
        script = ["-s", str(HERE / "upload.lua")] if work.upload else []
        target = secure if work.needs else url
        # It takes whole seconds.
        command = ["wrk", "-t1", f"-c{work.connections}", f"-d{seconds:.0f}", *script, target]
    return Run(_popen(command, {"OPENSSL_CONF": str(OPENSSL)}), work.tool)


def open_loop(url: str, rate: float, seconds: float, site: Site, *options: str) -> Run:
    """Arrivals at a rate that waits for nobody."""
    command = [str(site.programs.tenfold), "load", url, "--rate", f"{rate:g}", "--quiet"]
    command += ["--duration", f"{seconds:g}s", "--json", "-", *options]
    state = {"TENFOLD_STATE_DIR": str(site.directory / "load-state")}
    return Run(_popen(command, state), Tool.TENFOLD)


def _popen(command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["env", *(f"{name}={value}" for name, value in environment.items()), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wrk(said: str) -> Load:
    found = re.search(r"(\d+) requests in", said)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", said)
    socket = re.search(r"connect (\d+), read (\d+), write (\d+), timeout (\d+)", said)
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    assert found and rate
    errors = sum(int(count) for count in socket.groups()) if socket else 0
    errors += int(refused[1]) if refused else 0
    return Load(int(found[1]), errors, float(rate[1]))


def _h2load(said: str) -> Load:
    rate = re.search(r"finished in [^,]+, ([\d.]+) req/s", said)
    counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", said)
    answers = re.search(r"status codes: (\d+) 2xx", said)
    assert rate and counts and answers
    succeeded, *failed = (int(count) for count in counts.groups())
    errors = max(0, succeeded - int(answers[1])) + sum(failed)
    return Load(int(answers[1]), errors, float(rate[1]))


def _tenfold(said: str) -> Load:
    report = json.loads(said)
    times = report["response_ms"]
    began = (report["warm_up"] or {"length_s": 0})["length_s"]
    return Load(
        requests=report["requests"],
        errors=sum(report["errors"].values()),
        rate=report["throughput"],
        p50_ms=times["p50"],
        p95_ms=times["p95"],
        p99_ms=times["p99"],
        p999_ms=times.get("p999"),
        verdict=report["verdict"],
        between=(began, began + report["duration_s"]),
    )


_PARSERS = {Tool.WRK: _wrk, Tool.H2LOAD: _h2load, Tool.TENFOLD: _tenfold}
