"""What a run needs around it: cores, a directory in memory, processes that end with it."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from rig.child import Child

MEMORY = Path("/dev/shm")
# What programs on OpenSSL speak while they are measured.
OPENSSL = Path(__file__).parent / "openssl.cnf"
FILES = 25_000


@dataclass(frozen=True)
class Cores:
    """The measured process has one; whatever it works with, and this program, have the others."""

    measured: int
    others: list[int]


class Stage:
    """Ends everything that was started on it when it is left."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.cores = _cores()

    def __enter__(self) -> Self:
        # Below this, children inherit: nothing but what is measured ever runs on its core.
        os.sched_setaffinity(0, self.cores.others)
        _raise_file_limit()
        parent = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.directory = Path(tempfile.mkdtemp(prefix="tenfold-bench-", dir=parent))
        # The worker processes of nginx are not root.
        self.directory.chmod(0o755)
        self._stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        try:
            self._set_up()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def child(self, child: Child) -> Child:
        """Lives as long as the stage at most."""
        self._stack.callback(child.stop)
        return child

    def _set_up(self) -> None:
        """Starts what lives as long as the stage."""


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for this machine, and its key."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        + ["-nodes", "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        + ["-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    return certificate, key


def version(command: Sequence[str], pattern: str = r"(\d+(?:\.\d+)+)") -> str:
    """What a program says that it is."""
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(pattern, said.stdout + said.stderr)
    return found[1] if found else "unknown"


def _cores() -> Cores:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        sys.exit("bench: one core for what is measured and one for the rest: give it two")
    return Cores(allowed[0], allowed[1:])


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, FILES)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
    except (ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
