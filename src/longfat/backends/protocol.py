# SPDX-License-Identifier: Apache-2.0
"""What a backend is: the seam between deciding what to run and running it.

Owns the protocol, and the refusals that all backends but one share. tests/contract holds the one suite that each
backend has to pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from longfat.runspec import RunSpec


@dataclass(frozen=True)
class Capabilities:
    """What a backend offers on this machine.

    ``ccas`` holds the congestion-control algorithms by their kernel names. ``reasons`` says why the backend
    cannot work here at all (no root, no KVM, ...); it is empty where the backend can. ``at_once`` is how many
    runs may go on at a time, None as many as there are CPUs.
    """

    ccas: frozenset[str]
    reasons: tuple[str, ...] = ()
    at_once: int | None = None


class Backend(Protocol):
    """A place to execute runs.

    An object of it is pickled and sent to worker processes, one run at a time in each; it holds settings and
    digests, never open handles. Nothing it was told outside the RunSpec may change a run's outcome unless
    ``pins`` shows it.
    """

    @property
    def name(self) -> str:
        """The name it has in ``--backend``, in the pins and in ``run.json``."""

    def pins(self) -> dict[str, str]:
        """Digests of what takes part in a run besides its spec: ``backend``, ``kernel``, ``image``, ``lab``.

        Called once, before the plan is resolved; they become part of each RunSpec and so of its run_id.
        May build or unpack what is missing. Raises RigError when that fails.
        """

    def capabilities(self) -> Capabilities:
        """What can be done here. Called once before anything starts; must not change the machine."""

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Reasons why this run cannot be done as declared; empty when it can.

        Called for each run before the first one starts; must be quick and must not change the machine. A
        setting that cannot be kept is refused here, never ignored later.
        """

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Do one run and write the laboratory's files of docs/formats.md into ``folder``.

        Called in a worker process; ``folder`` exists, is empty but for ``spec.json``, and is the only place
        on the host that may be written to, apart from temporary files removed before the call ends. Writes
        neither ``spec.json`` nor ``run.json`` nor ``SHA256SUMS``. Returns when all processes it started have
        ended; they must also end when the worker process is killed. Raises RigError when the run crashed, and
        lets an OSError of a full disk pass.
        """


def refused_web(spec: RunSpec) -> tuple[str, ...]:
    """The reason why a backend without server and users does not do a run with web traffic; empty without."""
    return ("web traffic needs backend virtual",) if spec.web else ()


def refused_datagrams(spec: RunSpec) -> tuple[str, ...]:
    """The reasons why a backend that runs neither UDP traffic nor ping does not do a run with them."""
    reasons = ["UDP traffic needs backend virtual or mininet"] if spec.udp else []
    reasons += ["ping needs backend virtual or mininet"] if spec.probes.ping_interval_us else []
    return tuple(reasons)


def refused_transfers(spec: RunSpec) -> tuple[str, ...]:
    """The reason why a simulator does not do a run whose transfers follow each other; empty without."""
    following = any(flow.transfer_bytes is not None for flow in spec.flows)
    return ("transfers that follow each other need hosts with iperf2",) if following else ()


def refused_images(spec: RunSpec) -> tuple[str, ...]:
    """One reason for each container image that a host of the run is to be made from."""
    images = sorted({node.image for node in spec.nodes if node.image})
    return tuple(f"hosts from the image {image!r} need backend containernet" for image in images)
