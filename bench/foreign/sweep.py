"""A sweep by another generator: the instances behind `tenfold up`, driven as their users would.

The most instances are started and warmed up first, then some are taken away at a time, so that code
that is compiled while it runs has run for a while at every count.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from apps import App
from results import Sample

from rig.child import Child, free_ports
from rig.machine import Quiet
from rig.options import ROOT
from rig.program import GeneratorFailed

GENERATOR = ROOT / ".deps" / "bin" / "foreign-generator"
READY_S = 60
# Beside the time in which it sends: what is under way at the end.
PATIENCE_S = 60
# After a change of the count.
SETTLE_S = 2.0


@dataclass(frozen=True)
class Fleet:
    """A running `tenfold up`."""

    program: Path
    child: Child
    address: str
    environment: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def scale(self, instances: int) -> None:
        """Returns when there are so many."""
        subprocess.run(
            [str(self.program), "scale", str(instances), "--listen", self.address],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=PATIENCE_S,
        )


def sweep(program: Path, app: App, slots: int | None, seconds: float) -> list[Sample]:
    """By count, from one instance on, each for so many seconds or until there are enough requests."""
    measured_s = app.measured_s(seconds)
    samples = []
    with _up(program, app, slots) as fleet:
        _drive(app, fleet, app.most, app.warm_up_s, 1)
        for instances in range(app.most, 0, -1):
            if instances != app.most:
                fleet.scale(instances)
            samples.append(_drive(app, fleet, instances, SETTLE_S, measured_s))
    return samples[::-1]


def _drive(app: App, fleet: Fleet, instances: int, warm_s: float, seconds: float) -> Sample:
    times = ["-warm", f"{warm_s}s", "-measure", f"{seconds}s"]
    # The generator is this program's child, and not among others once it has ended.
    quiet = Quiet(set(fleet.child.tree()))
    done = subprocess.run(
        [str(GENERATOR), "-url", fleet.url + app.path, *app.generator_arguments, *times],
        capture_output=True,
        text=True,
        check=False,
        timeout=warm_s + seconds + PATIENCE_S,
    )
    if done.returncode:
        raise GeneratorFailed(f"the generator failed at {instances}: {done.stderr.strip()}")
    noise = quiet.noise()
    others = noise.others + noise.stolen
    return Sample(instances=instances, others_cores=others, **json.loads(done.stdout))


@contextmanager
def _up(program: Path, app: App, slots: int | None) -> Iterator[Fleet]:
    """The most instances behind the balancer, as people run them."""
    with TemporaryDirectory(prefix="tenfold-bench-") as directory:
        (port,) = free_ports(1)
        address = f"127.0.0.1:{port}"
        command = [str(program), "up", "-n", str(app.most), "--listen", address]
        command += ["--config", str(app.config), *(["--slots", str(slots)] if slots else [])]
        environment = {**os.environ, "TENFOLD_STATE_DIR": directory}
        every_core = sorted(os.sched_getaffinity(0))
        up = Child("tenfold up", command, every_core, Path(directory) / "said", environment)
        try:
            fleet = Fleet(program, up, address, environment)
            # The port opens before; this is said when every instance is ready.
            up.await_saying(f"behind {fleet.url}", READY_S)
            yield fleet
        finally:
            up.stop()
