"""The proxies that are compared: how each is started, and what it can do."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from child import Child, free_ports

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
        said = subprocess.run(self.version_command, capture_output=True, text=True, check=False)
        found = re.search(self.version_pattern, said.stdout + said.stderr)
        return found.group(1) if found else "unknown"


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
    """What this build of Tenfold says that it can do."""
    said = subprocess.run(
        [program, "balance", "--help"], capture_output=True, text=True, check=True
    ).stdout
    signs = {Feature.TLS: "--tls", Feature.HTTP2: "--http2", Feature.ACCESS_LOG: "--access-log"}
    return frozenset(feature for feature, sign in signs.items() if sign in said)


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


def filled(template: str, values: dict[str, str]) -> str:
    """A configuration with its `{{names}}` filled in."""
    return re.sub(r"\{\{(\w+)\}\}", lambda name: values[name[1]], (HERE / template).read_text())


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
    if kind.name == TENFOLD:
        return _tenfold(site, directory, plain)
    configuration = directory / kind.template
    configuration.write_text(filled(kind.template, values))
    return run_command(kind, configuration)


def run_command(kind: Kind, configuration: Path) -> tuple[list[str], dict[str, str]]:
    """What runs one of the peers with this configuration, in the foreground."""
    if kind is NGINX:
        return ["nginx", "-e", "stderr", "-c", str(configuration)], {}
    if kind is HAPROXY:
        return ["haproxy", "-db", "-f", str(configuration)], {}
    home = str(configuration.parent)
    caddy = ["caddy", "run", "--adapter", "caddyfile", "--config", str(configuration)]
    return caddy, {"GOMAXPROCS": "1", "HOME": home, "XDG_DATA_HOME": home}


def _tenfold(site: Site, directory: Path, plain: int) -> tuple[list[str], dict[str, str]]:
    command = [str(site.programs.tenfold), "balance", "--to", site.origin, "--slots", "2048"]
    command += ["--listen", f"127.0.0.1:{plain}", "--threads", "1"]
    return command, {"TENFOLD_STATE_DIR": str(directory / "state")}


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
    return {}
