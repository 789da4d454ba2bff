"""`make release`: has Tenfold do what it does most, relaying and loading.

It is a build that counts what it runs, for the compiler to know what to optimise. Nothing is
measured.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from rig import options
from rig.child import Child, ChildFailed, free_ports
from rig.options import Misuse
from rig.stage import Stage, make_certificate

JOB_S = 2
PATIENCE_S = 30.0
USERS = ["-c", "64"]
UPLOAD_BYTES = 1 << 20


class Training(Stage):
    """An origin, a balancer before it, and loads, one after the other."""

    def __init__(self, tenfold: Path, origin: Path) -> None:
        super().__init__()
        self._tenfold = str(tenfold)
        self._origin = str(origin)

    def run(self) -> None:
        origin = self._serve("origin", [self._origin, "files"])
        shop = self._serve("shop", [self._origin, "shop"])
        for has_log in (False, True):
            plain, tls, balancer = self._balance(origin, has_log)
            self._relay(plain, tls)
            balancer.stop()
        for engine in ("uring", "epoll"):
            self._load([*USERS, "--engine", engine, f"http://{origin}/128"])
        self._load(["--rate", "1000", f"http://{origin}/128"])
        script = self.directory / "shop.yml"
        text = (options.ROOT / "bench" / "load" / "shop.yml").read_text()
        # There its end is a signal.
        text = text.replace("count: 100000000", "count: 200")
        script.write_text(text.replace("{{target}}", f"http://{shop}").replace("{{users}}", "64"))
        self._load([str(script)])

    def _relay(self, plain: str, tls: str) -> None:
        upload = self.directory / "upload"
        upload.write_bytes(bytes(UPLOAD_BYTES))
        for path in ("128", "16384", "1048576"):
            self._load([*USERS, f"{plain}/{path}"])
        self._load([*USERS, "--body", f"@{upload}", f"{plain}/128"])
        self._load(["--rate", "1000", "--no-keep-alive", f"{plain}/128"])
        self._load([*USERS, "--insecure", f"{tls}/128"])
        self._load([*USERS, "--insecure", "--http2", f"{tls}/128"])
        self._load(["-c", "640", "--streams", "10", "--insecure", "--http2", f"{tls}/128"])

    def _balance(self, origin: str, has_log: bool) -> tuple[str, str, Child]:
        """As the benchmark has it."""
        plain, tls = free_ports(2)
        certificate, key = make_certificate(self.directory)
        values = {"plain": plain, "tls": tls, "certificate": certificate, "key": key}
        values |= {"origin": origin, "access_log": self.directory / "access.log"}
        template = (options.ROOT / "bench" / "balancer" / "tenfold.toml").read_text().splitlines()
        lines = [line for line in template if has_log or not line.startswith("access_log")]
        text = re.sub(r"\{\{(\w+)\}\}", lambda name: str(values[name[1]]), "\n".join(lines))
        configuration = self.directory / "tenfold.toml"
        configuration.write_text(text)
        command = [self._tenfold, "balance", "--config", str(configuration)]
        child = self._child("the balancer", command, [self.cores.measured])
        child.await_ports([plain, tls])
        return f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{tls}", child

    def _serve(self, name: str, command: list[str]) -> str:
        port = free_ports(1)[0]
        address = f"127.0.0.1:{port}"
        self._child(name, [*command, address], self.cores.others).await_ports([port])
        return address

    def _load(self, words: list[str]) -> None:
        seconds = ["--duration", f"{JOB_S}s"] if not words[0].endswith(".yml") else []
        command = [self._tenfold, "load", "--quiet", *seconds, *words]
        child = self._child("the generator", command, self.cores.others)
        said = child.finish(PATIENCE_S)
        print("\n".join(said.splitlines()[:2]), flush=True)

    def _child(self, name: str, command: list[str], cores: list[int]) -> Child:
        state = {"TENFOLD_STATE_DIR": str(self.directory / "state")}
        output = self.directory / f"output-{len(list(self.directory.iterdir()))}"
        return self.child(Child(name, command, cores, output, state))


def main() -> int:
    try:
        programs = options.programs(os.environ, ("TENFOLD", "ORIGIN"), "release")
        with Training(programs["tenfold"], programs["origin"]) as training:
            training.run()
    except (Misuse, ChildFailed) as error:
        print(f"train: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
