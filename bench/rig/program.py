"""What a benchmark does as a program: the words it takes, signals, and how it ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rig import options
from rig.child import ChildFailed
from rig.options import Misuse
from rig.table import Sheet
from rig.tenfold import TenfoldFailed

RENDER = "render"


class GeneratorFailed(Exception):
    """A generator did not do its work."""


class OtherThanPublished(Exception):
    """What was measured leads to another conclusion; the text says where."""


def main(
    word: str,
    measure: Callable[[], Sheet],
    results: str,
    render: Callable[[Path], Sheet],
    docs: Path = options.DOCS,
) -> int:
    """Measures and prints, or puts the tables of the last run, if there was one, into the documentation."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        if sys.argv[1:] == [RENDER]:
            last = options.results(os.environ) / results
            if last.is_file():
                render(last).put(docs, word)
        else:
            print(measure().text())
    except (Misuse, ChildFailed, GeneratorFailed, TenfoldFailed, OtherThanPublished) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _stop(_: int, __: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
