"""Tenfold itself, run as a user does, with a state directory of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# It has measured, whatever the answer: the goal is met, it is not, the measurement is invalid.
MEASURED = (0, 3, 4)


class TenfoldFailed(Exception):
    """It has measured nothing; the text is what it said."""


class Tenfold:
    def __init__(self, program: Path) -> None:
        self._program = program

    def __enter__(self) -> Self:
        self._directory = Path(tempfile.mkdtemp(prefix="tenfold-bench-"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def document(self, command: str, arguments: Sequence[str], patience_s: float) -> dict[str, Any]:
        """What `tenfold COMMAND --json` has written."""
        to = self._directory / "document.json"
        to.unlink(missing_ok=True)
        words = [command, "--json", str(to), *arguments]
        with (self._directory / "said").open("w+") as said:
            code = self._run(words, said.fileno(), patience_s)
            if code not in MEASURED:
                said.seek(0)
                raise TenfoldFailed(f"`tenfold {' '.join(words)}` failed: {said.read().strip()}")
        document: dict[str, Any] = json.loads(to.read_text())
        return document

    def _run(self, words: list[str], said: int, patience_s: float) -> int:
        child = subprocess.Popen(
            [str(self._program), *words],
            cwd=self._directory,
            env={**os.environ, "TENFOLD_STATE_DIR": str(self._directory / "state")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        try:
            return child.wait(patience_s)
        except subprocess.TimeoutExpired as error:
            raise TenfoldFailed(f"`tenfold {' '.join(words)}` has not ended in {patience_s:g} s") from error
        finally:
            # It takes its instances with it.
            if child.poll() is None:
                child.terminate()
                child.wait()
