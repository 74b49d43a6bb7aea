# SPDX-License-Identifier: Apache-2.0
"""The same laboratory in real time, on the host's own kernel: hosts are namespaces, or Docker containers.

Owns what both backends, ``mininet`` and ``containernet``, share: one run at a time, in the project's userland, with
nothing left when it ends. ``host_kernel`` refuses runs that the kernel cannot do.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from longfat.backends.collect import collect, read_text
from longfat.backends.docker_socket import docker_reasons, docker_socket
from longfat.backends.enclosure import enclosed, run_enclosed, tail
from longfat.backends.protocol import BEYOND_KERNELS, FEATURES, Capabilities, Feature, Traits
from longfat.backends.registry import Say, refused_features
from longfat.backends.virtual import open_virtual
from longfat.errors import RigError
from longfat.guest.host_kernel import HostKernel, ask_kernel
from longfat.locks import held
from longfat.runspec import Program, RunSpec, Web
from longfat.scratch import scratch_in

# A study's programs would run on the machine's own kernel, with a user id alone between them and the machine. A busy
# host is what each of its namespaces is already.
_CANNOT = {
    Web.what,
    Program.what,
    Feature.IMAGES,
    Feature.KERNELS,
    Feature.CHANGES,
    Feature.CARDS,
    Feature.CLOCKS,
    Feature.PROCESSING,
}
_CAN = FEATURES - BEYOND_KERNELS - _CANNOT
TRAITS = {
    "mininet": Traits(clock="real", kernel="machine", can=_CAN, setup_s=2.0),
    "containernet": Traits(clock="real", kernel="machine", can=_CAN | {Feature.IMAGES}, setup_s=2.0),
}
MARGIN_S = 180.0  # a run that lasts longer than its flows by this much hangs
PYTHON = ("/usr/bin/python3", "-I", "-S", "/code/longfat/guest/enclosed.py")


@dataclass(frozen=True)
class RealtimeBackend:
    """Runs in real time. ``root`` is the userland with the laboratory's code, as the guest has it.

    ``userland`` is the same as a tar file for Docker, ``docker`` the socket at which that listens; without it hosts are
    namespaces. ``containernet`` is the user's checkout of Containernet, if any.
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
        """Digests of image and laboratory code; the kernel is the machine's own, with its release and build."""
        build = hashlib.sha256(Path("/proc/version").read_bytes()).hexdigest()[:16]
        return {
            "backend": self.name,
            "kernel": f"{self.kernel.release} {build}",
            "image": self.image_digest,
            "code": self.code + (f" containernet {_digest(self.containernet)}" if self.containernet else ""),
        }

    def capabilities(self) -> Capabilities:
        """The algorithms of the machine's kernel, and everything that is missing here."""
        reasons = self.kernel.reasons + (docker_reasons(self.docker) if self.docker else ())
        return Capabilities(self.kernel.ccas, reasons)

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """The declared settings that the machine's kernel cannot provide."""
        return (*refused_features(self.name, spec), *self.kernel.refuses(spec))

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Do one run, alone on this machine, and move its raw files into ``folder``. Raises RigError."""
        scratch = self.jail / "scratch"
        scratch.mkdir(exist_ok=True)
        with (
            held(scratch / "realtime.lock"),
            scratch_in(scratch, "real-") as task,
        ):
            (task / "raw").mkdir()
            (task / "spec.json").write_text(spec.to_json())
            run_enclosed(self._command(task), task, spec.end_us / 1e6 + MARGIN_S)
            if not (task / "raw" / "outcome.json").is_file():
                raise RigError(f"the run ended without an outcome\n{tail(task / 'console.log')}")
            collect(task / "raw", folder)
            (folder / "console.log").write_text(read_text(task / "console.log"), encoding="utf-8")

    def _command(self, task: Path) -> list[str]:
        if self.docker is None:
            return enclosed(self.root, task, [*PYTHON])
        os.link(self.userland, task / "userland.tar")
        shown = {"docker.sock": self.docker}
        if self.containernet:
            # Containernet itself also starts the command `docker`.
            shown |= {"containernet": self.containernet, "docker": Path(shutil.which("docker") or "/usr/bin/docker")}
        image = f"longfat-host:{self.image_digest[:12]}"
        return enclosed(self.root, task, [*PYTHON, image], all_processes=True, shown=shown)


def open_backend(name: str, say: Say) -> RealtimeBackend:
    """The backend ``mininet`` or ``containernet``, its userland built now if it is not there yet. Raises RigError."""
    virtual = open_virtual(say)  # its composed root holds the same userland and code
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
    """The checkout of Containernet that ``LONGFAT_CONTAINERNET`` names, or None. Raises RigError when it is none."""
    given = environment.get("LONGFAT_CONTAINERNET")
    if not given:
        return None
    folder = Path(given)
    if not (folder / "mininet" / "net.py").is_file() or "class Containernet" not in _text(
        folder / "mininet" / "net.py"
    ):
        raise RigError(
            "there is no Containernet in this folder: its mininet/net.py with the class Containernet is missing",
            where=f"LONGFAT_CONTAINERNET={given}",
            hint="unset it to use the project's own class on plain Mininet",
        )
    return folder


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _digest(checkout: Path) -> str:
    """Digest of Containernet's code."""
    sources = sorted((checkout / "mininet").glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]
