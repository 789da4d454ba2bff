"""The drivers and balancers that are compared: what `tenfold up` is told for each."""

from __future__ import annotations

from dataclasses import dataclass

IMAGE = "app"


@dataclass(frozen=True)
class Contestant:
    name: str
    # Arguments of `tenfold up`.
    options: tuple[str, ...] = ()
    is_container: bool = False

    def words(self, app: str) -> list[str]:
        return list(self.options) if self.is_container else [*self.options, "--", app]


PROCESS = "process"

CONTESTANTS = (
    Contestant(PROCESS),
    Contestant("systemd", ("--driver", "systemd")),
    Contestant("Docker, by address", ("--image", IMAGE), is_container=True),
    Contestant("Docker, by published port", ("--image", IMAGE, "--publish"), is_container=True),
    Contestant("process behind nginx", ("--balancer", "nginx")),
    Contestant("process behind HAProxy", ("--balancer", "haproxy")),
)
