"""The load generators: what they can do, and what they are told."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from targets import HERE
from workloads import ARTILLERY, EPOLL, H2LOAD, OHA, TENFOLD, URING, WRK, Need, Server, Work

from rig.options import ROOT
from rig.stage import OPENSSL, version

# Installed by `scripts/deps bench`, where Debian has none.
DEPS = ROOT / ".deps"
PROGRAMS = {
    **{name: str(DEPS / "bin" / name) for name in ("hey", "k6", "oha", "vegeta")},
    "locust": str(DEPS / "locust" / "bin" / "locust"),
    "artillery": str(DEPS / "artillery" / "node_modules" / ".bin" / "artillery"),
}
# Longer than any window: they are ended when they have been measured.
LONG_S = 120


@dataclass(frozen=True)
class Job:
    """A work on a server that is running."""

    work: Work
    url: str
    # For scripts and state.
    directory: Path


@dataclass(frozen=True)
class Generator:
    """A generator that can be started."""

    name: str
    can: frozenset[Need]
    command: Callable[[Job], list[str]]
    program: str
    # What makes it print its version, and where in it that is.
    version_words: tuple[str, ...] = ("--version",)
    version_pattern: str = r"(\d+(?:\.\d+)+)"

    def version(self) -> str:
        # The Go toolchain writes one into programs that do not say it themselves.
        built_by_go = ("go", "version", "-m", self.program)
        command = (self.program, *self.version_words) if self.version_words else built_by_go
        return version(command, self.version_pattern)

    def installed(self) -> bool:
        return shutil.which(self.program) is not None


def environment(directory: Path) -> dict[str, str]:
    """What generators must not find out about, or must."""
    return {
        "OPENSSL_CONF": str(OPENSSL),
        "TENFOLD_STATE_DIR": str(directory / "state"),
        "ARTILLERY_DISABLE_TELEMETRY": "true",
        "K6_NO_USAGE_REPORT": "true",
    }


def generators(tenfold: Path) -> list[Generator]:
    """Tenfold's engines first."""
    small = frozenset({Need.HTTP1})
    scripts = frozenset({Need.HTTP1, Need.SCRIPT})
    secure = frozenset({Need.HTTP1, Need.TLS})
    built = r"\tmod\t\S+\tv(\S+)"
    return [
        *_tenfolds(tenfold),
        Generator(WRK, _all_but(Need.HTTP2, Need.SCRIPT), _wrk, "wrk"),
        Generator(H2LOAD, _all_but(Need.SCRIPT), _h2load, "h2load"),
        Generator("ab", secure, _ab, "ab", ("-V",)),
        Generator(OHA, _all_but(Need.SCRIPT), _oha, PROGRAMS["oha"]),
        Generator("hey", secure, _hey, PROGRAMS["hey"], (), built),
        Generator("vegeta", small, _vegeta, PROGRAMS["vegeta"], (), built),
        Generator("k6", small, _k6, PROGRAMS["k6"], ("version",)),
        Generator("Locust", small, _locust, PROGRAMS["locust"]),
        Generator(
            ARTILLERY,
            scripts,
            lambda job: [PROGRAMS["artillery"], "run", "--quiet", _script(job)],
            PROGRAMS["artillery"],
            version_pattern=r"Artillery:\s*(\S+)",
        ),
    ]


def tenfold_can(program: Path) -> frozenset[Need]:
    """What this build of Tenfold can do, by its own words."""
    helped = subprocess.run([program, "load", "--help"], capture_output=True, text=True, check=True)
    words = helped.stdout
    able = {Need.HTTP1, Need.MANY}
    if "--insecure" in words:
        able.add(Need.TLS)
    if "--http2" in words:
        able.add(Need.HTTP2)
    if re.search(r"\bscript", words, re.IGNORECASE):
        able.add(Need.SCRIPT)
    return frozenset(able)


def has_engines(program: Path) -> bool:
    helped = subprocess.run([program, "load", "--help"], capture_output=True, text=True, check=True)
    return "--engine" in helped.stdout


def _tenfolds(program: Path) -> list[Generator]:
    """An entry for each engine, and one that chooses for itself what to use."""
    can = tenfold_can(program)
    itself = str(program)

    def told(*options: str) -> Callable[[Job], list[str]]:
        return lambda job: [str(program), *_tenfold(job), *options]

    by_itself = Generator(TENFOLD, can & {Need.HTTP2, Need.SCRIPT}, told(), itself)
    can -= by_itself.can
    if not has_engines(program):
        return [by_itself, Generator(EPOLL, can, told(), itself)]
    uring = Generator(URING, can, told("--engine", "uring"), itself)
    return [by_itself, uring, Generator(EPOLL, can, told("--engine", "epoll"), itself)]


def _tenfold(job: Job) -> list[str]:
    command = ["load", "--quiet"]
    match job.work.need:
        case Need.SCRIPT:
            return [*command, _script(job)]
        case Need.HTTP2:
            users = job.work.connections * job.work.streams
            command += ["--http2", "--streams", str(job.work.streams), "-c", str(users)]
        case Need.TLS:
            command += ["--insecure", "-c", str(job.work.connections)]
        case Need.HTTP1 | Need.MANY:
            command += ["-c", str(job.work.connections)]
    return [*command, "--duration", f"{LONG_S}s", job.url]


def _wrk(job: Job) -> list[str]:
    return ["wrk", "-t1", f"-c{job.work.connections}", f"-d{LONG_S}", job.url]


def _h2load(job: Job) -> list[str]:
    plain = [] if job.work.need is Need.HTTP2 else ["--h1"]
    streams = f"-m{job.work.streams}"
    return ["h2load", *plain, "-t1", f"-c{job.work.connections}", streams, f"-D{LONG_S}", job.url]


def _ab(job: Job) -> list[str]:
    # It keeps the time of every request, so many at most.
    limit = ["-t", str(LONG_S), "-n", "10000000"]
    # It speaks HTTP/1.0, where servers have to say that they keep a connection.
    url = job.url.replace("/128", "/kept/128") if job.work.server is Server.FILES else job.url
    return ["ab", "-k", "-q", "-c", str(job.work.connections), *limit, url]


def _oha(job: Job) -> list[str]:
    command = [PROGRAMS["oha"], "--no-tui", "--insecure", "-z", f"{LONG_S}s"]
    if job.work.need is Need.HTTP2:
        command += ["--http2", "-p", str(job.work.streams)]
    return [*command, "-c", str(job.work.connections), job.url]


def _hey(job: Job) -> list[str]:
    users = str(job.work.connections)
    return [PROGRAMS["hey"], "-z", f"{LONG_S}s", "-c", users, job.url]


def _vegeta(job: Job) -> list[str]:
    targets = job.directory / "vegeta"
    targets.write_text(f"GET {job.url}\n")
    users = str(job.work.connections)
    command = [PROGRAMS["vegeta"], "attack", "-rate=0", f"-duration={LONG_S}s"]
    command += [f"-workers={users}", f"-max-workers={users}", f"-connections={users}"]
    return [*command, f"-targets={targets}", f"-output={os.devnull}"]


def _k6(job: Job) -> list[str]:
    command = [PROGRAMS["k6"], "run", "--quiet", "--address", ""]
    command += ["--vus", str(job.work.connections), "--duration", f"{LONG_S}s"]
    return [*command, "--env", f"URL={job.url}", str(HERE / "small.js")]


def _locust(job: Job) -> list[str]:
    users = str(job.work.connections)
    command = [PROGRAMS["locust"], "-f", str(HERE / "locustfile.py")]
    command += ["--headless", "--only-summary", "--loglevel", "ERROR", "-H", base(job.url)]
    return [*command, "-u", users, "-r", users, "-t", f"{LONG_S}s"]


def _script(job: Job) -> str:
    """The work's script, with this server and these users."""
    name = "shop.yml" if job.work.need is Need.SCRIPT else "small.yml"
    values = {"target": base(job.url), "users": str(job.work.connections)}
    text = (HERE / name).read_text()
    filled = job.directory / name
    filled.write_text(re.sub(r"\{\{(\w+)\}\}", lambda key: values[key[1]], text))
    return str(filled)


def base(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _all_but(*needs: Need) -> frozenset[Need]:
    return frozenset(Need) - frozenset(needs)
