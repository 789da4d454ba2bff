"""The proxies that are compared: how each is started, and what it can do."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from rig.child import Child, free_ports
from rig.stage import make_certificate, version

HERE = Path(__file__).parent


class Feature(Enum):
    TLS = "TLS"
    HTTP2 = "HTTP/2 from clients"
    ACCESS_LOG = "an access log"


class AccessLog(Enum):
    OFF = "off"
    ON = "on"


@dataclass(frozen=True)
class Programs:
    """Where the programs are that the benchmark runs."""

    tenfold: Path
    pingora: Path
    origin: Path
    # Tells the intended arrivals of a load.
    arrivals: Path


@dataclass(frozen=True)
class Site:
    """What all proxies of a run have in common."""

    programs: Programs
    # On tmpfs: access logs must not wait for a disk.
    directory: Path
    certificate: Path
    key: Path
    # Certificate and key in one file, as HAProxy wants them.
    bundle: Path
    origin: str
    core: int


@dataclass
class Proxy:
    """A running proxy."""

    name: str
    plain: int
    tls: int
    child: Child
    access_log: Path | None = None

    def take_log_lines(self) -> int | None:
        """Counts what has been logged since the last time, and makes room in memory for more."""
        if self.access_log is None:
            return None
        with self.access_log.open("rb+") as log:
            lines = sum(block.count(b"\n") for block in iter(lambda: log.read(1 << 20), b""))
            log.truncate(0)
        return lines


@dataclass(frozen=True)
class Kind:
    """A proxy that can be started."""

    name: str
    # What prints its version, and the pattern that finds it there.
    version_command: tuple[str, ...]
    version_pattern: str
    # The file beside this one that configures it, filled in.
    template: str
    features: frozenset[Feature] = field(default_factory=lambda: frozenset(Feature))

    def version(self) -> str:
        return version(self.version_command, self.version_pattern)


TENFOLD = "Tenfold"
NGINX = Kind("nginx", ("nginx", "-v"), r"nginx/(\S+)", "nginx.conf")
HAPROXY = Kind("HAProxy", ("haproxy", "-v"), r"version (\S+)", "haproxy.cfg")
CADDY = Kind("Caddy", ("caddy", "version"), r"(\S+)", "Caddyfile")


def kinds(programs: Programs) -> list[Kind]:
    """Tenfold first."""
    tenfold = Kind(
        TENFOLD,
        (str(programs.tenfold), "--version"),
        r"(\d\S+)",
        "tenfold.toml",
        tenfold_features(programs.tenfold),
    )
    lock = str(HERE.parent / "pingora" / "Cargo.lock")
    locked = ("grep", "-A1", '^name = "pingora"$', lock)
    pingora = Kind("Pingora", locked, r'version = "(\S+)"', "")
    return [tenfold, NGINX, HAPROXY, CADDY, pingora]


def tenfold_features(program: Path) -> frozenset[Feature]:
    """What this build of Tenfold can do."""
    configurable = (Feature.TLS, Feature.ACCESS_LOG)
    with tempfile.TemporaryDirectory() as directory:
        trial = _Trial(program, Path(directory))
        features = {feature for feature in configurable if trial.accepts(feature)}
        if Feature.TLS in features and trial.speaks_http2():
            features.add(Feature.HTTP2)
    return frozenset(features)


def start(kind: Kind, site: Site, log: AccessLog) -> Proxy:
    """Starts a proxy of this kind on ports of its own, on its core."""
    plain, tls = free_ports(2)
    directory = site.directory / f"{kind.name.lower()}-{plain}"
    directory.mkdir()
    access_log = directory / "access.log" if log is AccessLog.ON else None
    command, environment = _command(kind, site, directory, (plain, tls), access_log)
    output = directory / "output"
    child = Child(kind.name, command, [site.core], output, environment)
    listens = [plain, tls] if Feature.TLS in kind.features else [plain]
    try:
        child.await_ports(listens)
    except BaseException:
        child.stop()
        raise
    # HAProxy writes its log to its standard output.
    if access_log and kind is HAPROXY:
        access_log = output
    return Proxy(kind.name, plain, tls, child, access_log)


def discard(proxy: Proxy) -> None:
    proxy.child.stop()
    if proxy.access_log:
        shutil.rmtree(proxy.access_log.parent, ignore_errors=True)


def filled(template: str, values: dict[str, str], features: frozenset[Feature]) -> str:
    """A configuration with its `{{names}}` filled in, without lines that need another feature."""
    lines = []
    for line in (HERE / template).read_text().splitlines():
        need = re.search(r"# needs (.+)$", line)
        if need is None or Feature(need[1]) in features:
            lines.append(re.sub(r"\{\{(\w+)\}\}", lambda name: values[name[1]], line))
    return "\n".join(lines) + "\n"


def _command(
    kind: Kind, site: Site, directory: Path, ports: tuple[int, int], access_log: Path | None
) -> tuple[list[str], dict[str, str]]:
    plain, tls = ports
    values = {
        "dir": str(directory),
        "plain": str(plain),
        "tls": str(tls),
        "origin": site.origin,
        "certificate": str(site.certificate),
        "key": str(site.key),
        "bundle": str(site.bundle),
    }
    values |= _log_settings(kind, access_log)
    if kind.name == "Pingora":
        listen = [f"127.0.0.1:{port}" for port in ports]
        files = [str(site.certificate), str(site.key), str(access_log or "-")]
        return [str(site.programs.pingora), *listen, site.origin, *files], {}
    features = kind.features if access_log else kind.features - {Feature.ACCESS_LOG}
    configuration = directory / kind.template
    configuration.write_text(filled(kind.template, values, features))
    return run_command(kind, configuration, site.programs)


def run_command(
    kind: Kind, configuration: Path, programs: Programs
) -> tuple[list[str], dict[str, str]]:
    """What runs a proxy with this configuration, in the foreground."""
    if kind.name == TENFOLD:
        state = {"TENFOLD_STATE_DIR": str(configuration.parent / "state")}
        return [str(programs.tenfold), "balance", "--config", str(configuration)], state
    if kind is NGINX:
        return ["nginx", "-e", "stderr", "-c", str(configuration)], {}
    if kind is HAPROXY:
        return ["haproxy", "-db", "-f", str(configuration)], {}
    home = str(configuration.parent)
    caddy = ["caddy", "run", "--adapter", "caddyfile", "--config", str(configuration)]
    return caddy, {"GOMAXPROCS": "1", "HOME": home, "XDG_DATA_HOME": home}


class _Trial:
    """Tenfold with a configuration that may be beyond it."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._program = str(program)
        self._directory = directory
        self._certificate, self._key = make_certificate(directory)
        self._plain, self._tls = free_ports(2)

    def accepts(self, feature: Feature) -> bool:
        command = [*self._command(feature), "--check"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def speaks_http2(self) -> bool:
        """By what it answers to a client that offers only that (RFC 7301)."""
        cores = sorted(os.sched_getaffinity(0))
        output, state = self._directory / "output", str(self._directory / "state")
        command = self._command(Feature.TLS)
        child = Child(TENFOLD, command, cores, output, {"TENFOLD_STATE_DIR": state})
        offer = ssl.create_default_context(cafile=str(self._certificate))
        offer.set_alpn_protocols(["h2"])
        try:
            child.await_ports([self._tls])
            with socket.create_connection(("127.0.0.1", self._tls), timeout=5) as plain:
                with offer.wrap_socket(plain, server_hostname="localhost") as secure:
                    return secure.selected_alpn_protocol() == "h2"
        except ssl.SSLError:
            return False
        finally:
            child.stop()

    def _command(self, feature: Feature) -> list[str]:
        values = {
            "certificate": str(self._certificate),
            "key": str(self._key),
            "origin": "127.0.0.1:9",
            "plain": str(self._plain),
            "tls": str(self._tls),
            "access_log": str(self._directory / "access.log"),
        }
        configuration = self._directory / "tenfold.toml"
        configuration.write_text(filled("tenfold.toml", values, frozenset({feature})))
        return [self._program, "balance", "--config", str(configuration)]


def _log_settings(kind: Kind, access_log: Path | None) -> dict[str, str]:
    on = access_log is not None
    if kind is NGINX:
        # Collected as its documentation advises for many requests.
        return {"access_log": f"{access_log} combined buffer=64k flush=1s" if on else "off"}
    if kind is HAPROXY:
        log_target = "log stdout format raw local0 info" if on else ""
        return {"log_target": log_target, "log": "log global\n    option httplog" if on else ""}
    if kind is CADDY:
        return {"log": f"log {{\n\t\toutput file {access_log}\n\t}}" if on else ""}
    return {"access_log": str(access_log)}
