"""What stands around the proxies: a certificate and an origin, on the other cores."""

from __future__ import annotations

from proxies import AccessLog, Kind, Programs, Proxy, Site, discard, start

from rig.child import Child, free_ports
from rig.stage import Stage, make_certificate


class ProxyStage(Stage):
    def __init__(self, programs: Programs) -> None:
        super().__init__()
        self._programs = programs

    def proxy(self, kind: Kind, log: AccessLog) -> Proxy:
        """Lives as long as the stage, or until it is discarded."""
        proxy = start(kind, self.site, log)
        self._stack.callback(discard, proxy)
        return proxy

    def discard(self, proxy: Proxy) -> None:
        discard(proxy)

    def _set_up(self) -> None:
        port = free_ports(1)[0]
        command = [str(self._programs.origin), "files", f"127.0.0.1:{port}"]
        output = self.directory / "origin"
        self.origin = self.child(Child("the origin", command, self.cores.others, output))
        self.origin.await_ports([port])
        certificate, key = make_certificate(self.directory)
        bundle = self.directory / "bundle.pem"
        bundle.write_text(certificate.read_text() + key.read_text())
        self.site = Site(
            programs=self._programs,
            directory=self.directory,
            certificate=certificate,
            key=key,
            bundle=bundle,
            origin=f"127.0.0.1:{port}",
            core=self.cores.measured,
        )
