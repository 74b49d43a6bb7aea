# SPDX-License-Identifier: Apache-2.0
"""Runs in real time on this machine's kernel: hosts are namespaces (``mininet``) or containers (``containernet``).

Executes one run at a time, in the project's userland, and leaves nothing behind. ``host_kernel`` refuses runs that the
kernel cannot execute.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from longfat.backends.collect import collect, read_text, tail
from longfat.backends.enclosure import enclose, run_enclosed
from longfat.backends.protocol import BEYOND_KERNELS, FEATURES, Capabilities, Feature, Traits
from longfat.backends.registry import Say, refused_features
from longfat.backends.virtual import open_virtual
from longfat.guest.host_kernel import HostKernel, ask_kernel
from longfat.guest.processes import drain_s
from longfat.spec.runspec import Program, RunSpec, Web
from longfat.system.errors import RigError
from longfat.system.scratch import scratch_in
from longfat.system.store import hold_patiently

# Only a user id would separate a study's programs from this machine's kernel. The packets of a
# namespace share this machine's CPUs, so a card with its own processing costs cannot be emulated.
_CANNOT = {
    Web.what,
    Program.what,
    Feature.IMAGES,
    Feature.KERNELS,
    Feature.CHANGES,
    Feature.CARDS,
    Feature.CLOCKS,
    Feature.PROCESSING,
    Feature.PAUSES,
}
_CAN = FEATURES - BEYOND_KERNELS - _CANNOT
TRAITS = {
    "mininet": Traits(clock="real", kernel="machine", can=_CAN, setup_s=2.0),
    "containernet": Traits(clock="real", kernel="machine", can=_CAN | {Feature.IMAGES}, setup_s=2.0),
}
MARGIN_S = 180.0  # to build the network, and to end
CAPTURE_COST = 5  # seconds to read a second of capture: 10 Gbit/s are 1.2 million packets/s, of which it reads 250,000
DOCKER_SOCKET = Path("/run/docker.sock")
DOCKER_TIMEOUT_S = 5.0
PYTHON = ("/usr/bin/python3", "-I", "-S", "/code/longfat/guest/container_init.py")


@dataclass(frozen=True)
class RealtimeBackend:
    """Runs in real time. ``root`` is the same root as in a guest: the userland with the guest's code.

    ``userland`` is the same as a tar file for Docker. ``docker`` is Docker's socket; without it hosts are namespaces.
    ``containernet`` is the user's checkout of Containernet, if any.
    """

    name: str
    kernel: HostKernel
    image_digest: str
    code: str
    jail: Path
    root: Path
    userland: Path
    docker: Path | None = None
    containernet: Path | None = None

    def pins(self) -> dict[str, str]:
        """Return the digests of image and guest code, and release and build of this machine's kernel."""
        build = hashlib.sha256(Path("/proc/version").read_bytes()).hexdigest()[:16]
        return {
            "backend": self.name,
            "kernel": f"{self.kernel.release} {build}",
            "image": self.image_digest,
            "code": self.code + (f" containernet {_digest(self.containernet)}" if self.containernet else ""),
        }

    def capabilities(self) -> Capabilities:
        """Return the algorithms of this machine's kernel, and all missing requirements."""
        reasons = self.kernel.reasons + (docker_reasons(self.docker) if self.docker else ())
        return Capabilities(self.kernel.ccas, reasons)

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Return the declared settings beyond this machine's kernel."""
        return (*refused_features(self.name, spec), *self.kernel.refuses(spec))

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Execute one run, alone on this machine, and copy its raw files into ``folder``. Raises RigError."""
        scratch = self.jail / "scratch"
        scratch.mkdir(exist_ok=True)
        with (
            hold_patiently(scratch / "realtime.lock"),
            scratch_in(scratch, "real-") as task,
        ):
            (task / "raw").mkdir()
            (task / "spec.json").write_text(spec.to_json())
            run_enclosed(self._command(task), task, longest_s(spec))
            if not (task / "raw" / "outcome.json").is_file():
                raise RigError(f"the run ended without an outcome\n{tail(read_text(task / 'console.log'))}")
            collect(task / "raw", folder)
            (folder / "console.log").write_text(read_text(task / "console.log"), encoding="utf-8")

    def _command(self, task: Path) -> list[str]:
        if self.docker is None:
            return enclose(self.root, task, [*PYTHON])
        os.link(self.userland, task / "userland.tar")
        binds = {"docker.sock": self.docker}
        if self.containernet:
            # Containernet also starts the command `docker`.
            binds |= {"containernet": self.containernet, "docker": Path(shutil.which("docker") or "/usr/bin/docker")}
        image = f"longfat-host:{self.image_digest[:12]}"
        return enclose(self.root, task, [*PYTHON, image], all_processes=True, binds=binds)


def longest_s(spec: RunSpec) -> float:
    """Return the seconds after which a run in real time counts as hung."""
    reading = CAPTURE_COST if spec.probes.capture else 0
    return (1 + reading) * spec.end_us / 1e6 + drain_s(spec) + MARGIN_S


def open_backend(name: str, say: Say) -> RealtimeBackend:
    """Return the backend ``mininet`` or ``containernet``, after building a missing userland. Raises RigError."""
    virtual = open_virtual(say, kernels=())  # its root has the same userland and code
    return RealtimeBackend(
        name=name,
        kernel=ask_kernel(virtual.root),
        image_digest=virtual.image_digest,
        code=virtual.code,
        jail=virtual.jail,
        root=virtual.root,
        userland=virtual.image,
        docker=docker_socket(os.environ) if name == "containernet" else None,
        containernet=containernet_checkout(os.environ) if name == "containernet" else None,
    )


def containernet_checkout(environment: Mapping[str, str]) -> Path | None:
    """Return the checkout of Containernet in ``LONGFAT_CONTAINERNET``, or None. Raises RigError on another folder."""
    given = environment.get("LONGFAT_CONTAINERNET")
    if not given:
        return None
    folder = Path(given)
    module = folder / "mininet" / "net.py"
    if not module.is_file() or "class Containernet" not in module.read_text(encoding="utf-8", errors="replace"):
        raise RigError(
            "this folder has no Containernet: mininet/net.py with the class Containernet is missing",
            where=f"LONGFAT_CONTAINERNET={given}",
            hint="unset it to use the project's class on plain Mininet",
        )
    return folder


def _digest(checkout: Path) -> str:
    """Return the digest of Containernet's code."""
    sources = sorted((checkout / "mininet").glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def docker_socket(environment: Mapping[str, str]) -> Path:
    """Return the socket in ``DOCKER_HOST``, else Docker's default. Raises RigError on another kind of address."""
    given = environment.get("DOCKER_HOST", "")
    if not given:
        return DOCKER_SOCKET
    if not given.startswith("unix://"):
        message = "hosts are containers of this machine, so Docker must have a socket"
        raise RigError(message, where=f"DOCKER_HOST={given}", hint="unset DOCKER_HOST, or give unix:///PATH")
    return Path(given.removeprefix("unix://"))


def docker_reasons(path: Path) -> tuple[str, ...]:
    """Return the reasons against Docker; empty if it answers."""
    channel = socket.socket(socket.AF_UNIX)
    channel.settimeout(DOCKER_TIMEOUT_S)
    try:
        with channel:
            channel.connect(str(path))
            connection = http.client.HTTPConnection("docker")
            connection.sock = channel
            connection.request("GET", "/_ping")
            answer = connection.getresponse().read()
    except (OSError, http.client.HTTPException) as error:
        return (f"Docker does not answer at {path} ({error}); start it, or install it (images/packages-docker.txt)",)
    return () if answer == b"OK" else (f"the program that answers at {path} is not Docker",)
