"""Namespaces with a systemd and a Docker of their own, in which everything runs that is measured."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rig.child import PATIENCE_S, Child, ChildFailed, free_ports, thread_ns
from rig.options import ROOT

# What the stories of systemd boot their machine with: nothing in it is this machine's.
BOOT = ROOT / "tests" / "stories" / "systemd_machine" / "boot.sh"
ALONE = "[Unit]\nDefaultDependencies=no\n"
# All that the systemd knows: targets without which no service can be started, a bus and a journal.
UNITS = {
    "sysinit.target": ALONE,
    "basic.target": ALONE,
    "sockets.target": ALONE,
    "shutdown.target": ALONE,
    "default.target": ALONE + "Wants=dbus.socket journal.service\n",
    "dbus.socket": ALONE + "[Socket]\nListenStream=/run/dbus/system_bus_socket\n",
    "dbus.service": ALONE
    + "[Service]\nType=notify\nExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork "
    "--nopidfile --systemd-activation --syslog-only\n",
    "journal.service": ALONE + "[Service]\nType=notify\nExecStart=/lib/systemd/systemd-journald\n",
}
GROUPS = Path("/sys/fs/cgroup")
BOOT_S = 30
IMPORT_S = 60
# A service of its own, whose control groups it may divide: what merely enters the namespaces is in none of theirs.
DELEGATED = (
    *("systemd-run", "--quiet", "--wait", "--pipe", "--collect", "--property=Delegate=yes"),
    "--setenv=TENFOLD_STATE_DIR",
)
# `tenfold up` waits for requests in flight: an instance works off what clients have given up.
STOP_S = 60


class Sandbox:
    """Ends everything in it when it is left."""

    def __init__(self, tenfold: Path) -> None:
        self._tenfold = tenfold
        self._cores = sorted(os.sched_getaffinity(0))
        self._children: list[Child] = []
        self._started = count()
        # What has made the namespaces, and its child, the first process inside.
        self._booted: Child | None = None
        self._first = 0
        self.docker: Child | None = None

    def __enter__(self) -> Self:
        self.home = Path(tempfile.mkdtemp(prefix="tenfold-bench-"))
        self._group = self.home.name
        try:
            self._boot()
            self._start_docker()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def tenfold(self) -> str:
        """The program, inside."""
        return str(self.home / "tenfold")

    def take(self, path: Path, name: str | None = None) -> str:
        """A copy of this file or folder, which is then visible inside."""
        to = self.home / (name or path.name)
        if path.is_dir():
            shutil.copytree(path, to, symlinks=True)
        else:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)
        return str(to)

    def know_unit(self, name: str, text: str) -> None:
        """A unit of this systemd from now on."""
        (self.home / "units" / name).write_text(text)
        self.run("systemctl", ["systemctl", "daemon-reload"], PATIENCE_S)

    def make_image(self, name: str, files: Sequence[Path], changes: Sequence[str]) -> None:
        """An image with these files alone, in its root, and instructions as of a Dockerfile."""
        archive = self.home / f"{name}.tar"
        with tarfile.open(archive, "w") as tar:
            for file in files:
                tar.add(file, file.name)
        instructions = [word for change in changes for word in ("-c", change)]
        command = ["docker", "import", *instructions, str(archive), name]
        self.run("docker import", command, IMPORT_S)

    def start(self, name: str, command: Sequence[str]) -> Child:
        """Starts it inside."""
        output = self.home / f"{name.replace(' ', '-')}.{next(self._started)}"
        environment = {
            "TENFOLD_STATE_DIR": str(self.home / "state"),
            "DOCKER_CONFIG": str(self.home),
        }
        child = Child(name, self._inside(command), self._cores, output, environment)
        self._children.append(child)
        return child

    def stop(self, child: Child) -> None:
        """Asks it to end; it is the only child of what has entered."""
        for pid in child.tree()[1:2]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        child.finish(STOP_S)
        self._children.remove(child)

    def run(self, name: str, command: Sequence[str], patience_s: float) -> str:
        """What it said, once it has ended."""
        child = self.start(name, command)
        said = child.finish(patience_s)
        self._children.remove(child)
        return said

    @contextlib.contextmanager
    def serving(self, words: Sequence[str], patience_s: float) -> Iterator[tuple[str, float]]:
        """`tenfold up` with these arguments: its address, and the seconds until all instances served."""
        (port,) = free_ports(1)
        address = f"127.0.0.1:{port}"
        began = time.monotonic()
        up = self.start("tenfold up", [self.tenfold, "up", "--listen", address, *words])
        try:
            up.await_saying(f" http://{address}\n", patience_s)
            yield address, time.monotonic() - began
        finally:
            self.stop(up)

    def document(
        self, command: str, words: Sequence[str], patience_s: float, *, limits_processes: bool = False
    ) -> dict[str, Any]:
        """What `tenfold COMMAND --json` has written."""
        to = self.home / "document.json"
        to.unlink(missing_ok=True)
        enter = DELEGATED if limits_processes else ()
        command_line = [*enter, self.tenfold, command, "--quiet", "--json", str(to), *words]
        said = self.run(f"tenfold {command}", command_line, patience_s)
        if not to.exists():
            raise ChildFailed(f"`tenfold {command}` failed:\n{said}")
        document: dict[str, Any] = json.loads(to.read_text())
        return document

    def pids(self) -> set[int]:
        """All that runs inside."""
        roots = [self._booted, *self._children] if self._booted else []
        return {pid for root in roots for pid in root.tree()}

    def cpu_ns(self, without_docker: bool) -> dict[int, int]:
        """CPU time so far of all that runs inside, by process."""
        idle = set(self.docker.tree()) if self.docker and without_docker else set()
        return {pid: thread_ns(pid) for pid in self.pids() - idle}

    def used_ns(self, before: Mapping[int, int], without_docker: bool) -> int:
        """CPU time since `cpu_ns`. What has begun since counts from its start."""
        after = self.cpu_ns(without_docker)
        return sum(ns - before.get(pid, 0) for pid, ns in after.items())

    def _inside(self, command: Sequence[str]) -> list[str]:
        enter = ["nsenter", f"--target={self._first}", "--mount", "--net", "--pid", "--cgroup", "--"]
        # Its process group must not be one from outside, which has no number inside.
        return [*enter, "setsid", *command]

    def _boot(self) -> None:
        units = self.home / "units"
        units.mkdir()
        for name, text in UNITS.items():
            (units / name).write_text(text)
        command = ["sh", str(BOOT), str(self.home), self._group, str(self._tenfold)]
        booted = self._booted = Child("systemd", command, self._cores, self.home / "boot")
        give_up = time.monotonic() + BOOT_S
        while "running" not in self._system_state(booted):
            if booted.ended() or time.monotonic() > give_up:
                said = booted.said()[-2000:]
                raise ChildFailed(f"no systemd of its own starts; run it as root. It said:\n{said}")
            time.sleep(0.05)

    def _system_state(self, booted: Child) -> str:
        if not (self.home / "made").exists() or len(booted.tree()) < 2:
            return ""
        self._first = booted.tree()[1]
        asked = self._inside(["systemctl", "is-system-running"])
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout

    def _start_docker(self) -> None:
        """None where it is not installed: Tenfold says so itself."""
        if not shutil.which("dockerd"):
            return
        folders = ["--data-root", str(self.home / "docker"), "--exec-root", "/run/docker"]
        driver = ["--exec-opt", "native.cgroupdriver=cgroupfs"]
        # The settings of the kernel are read-only inside, and containers need not reach beyond.
        network = ["--iptables=false", "--ip-forward=false"]
        self.docker = self.start("dockerd", ["dockerd", *folders, *driver, *network])
        self.docker.await_saying("API listen on", BOOT_S)

    def _end(self) -> None:
        for child in [*reversed(self._children)]:
            child.kill()
        if self._booted:
            self._booted.kill()
        self._remove_groups()
        shutil.rmtree(self.home, ignore_errors=True)

    def _remove_groups(self) -> None:
        """A group can be removed when the last of its processes is gone, which takes a moment."""
        for _ in range(100):
            groups = [*GROUPS.glob(f"*/{self._group}"), *GROUPS.glob(self._group)]
            if not groups:
                return
            for group in groups:
                for below, _, _ in os.walk(group, topdown=False):
                    with contextlib.suppress(OSError):
                        os.rmdir(below)
            time.sleep(0.02)
