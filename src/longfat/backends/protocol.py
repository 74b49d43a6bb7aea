# SPDX-License-Identifier: Apache-2.0
"""What a backend is: the seam between deciding what to run and running it.

Owns the protocol, and the traits by which all others know a backend without its name. tests/contract holds the one
suite that each backend has to pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from longfat.catalog.kernels import KERNELS, OWN
from longfat.identity import KernelSource
from longfat.runspec import KINDS, Flow, RunSpec


class Feature(StrEnum):
    """What a run may need and not every backend can do, beside kinds of traffic.

    Hosts, links, pfifo queues and TCP flows all of them can.
    """

    TRANSFERS = "transfers that follow each other"
    RATES = "flows limited by their application"
    CAPTURE = "captures"
    DROPS = "deliberate drops"
    RED = "queues of kind red"
    QUEUES = "queues of kinds other than pfifo and red"
    IMPAIRMENTS = "random loss and jitter"
    CARDS = "interrupt moderation and time for each packet"
    CLOCKS = "drawn clocks and distances"
    PROCESSING = "a drawn processing time for each packet"
    CHANGES = "rates and delays that change"
    POLICERS = "policers"
    GENTLE = "RED in gentle mode"
    PLAIN_RENO = "plain Reno, without NewReno's partial acknowledgments"
    IMAGES = "hosts made from container images"
    KERNELS = "named kernels"


FEATURES: frozenset[str] = frozenset(Feature) | {record.what for record in KINDS.values() if record is not Flow}
"""All that a run may need and not every backend can do; of a kind of traffic that is what it is called."""

BEYOND_KERNELS = frozenset({Feature.GENTLE, Feature.PLAIN_RENO})
"""What no Linux kernel can do: the planner leaves such runs out where the backend cannot either."""


@dataclass(frozen=True)
class Traits:
    """What a backend is by nature, whatever the machine: known by its name alone, before it is opened.

    Under a virtual ``clock`` a run takes the time that it needs, under a real one a second takes a second, and runs
    follow each other. The ``kernel`` is the project's own, with its switches, or the machine's, or there is none.
    ``can`` holds the features that it has. Each run of ``guests`` takes its spec's memory. ``lab`` says that it is
    opened on a lab. ``setup_s`` is what a run takes besides its flows where time is real.
    """

    clock: Literal["virtual", "real"] = "virtual"
    kernel: Literal["own", "machine", "none"] = "own"
    can: frozenset[str] = FEATURES - BEYOND_KERNELS
    guests: bool = False
    lab: bool = False
    setup_s: float = 0.0

    @property
    def own_world(self) -> bool:
        """Whether its results may stand among those of the project's kernel in virtual time."""
        return self.clock == "virtual" and self.kernel == "own"


def needed(spec: RunSpec) -> dict[str, str]:
    """The features that a run needs, each in the words of what needs it."""
    found: dict[str, str] = {
        record.what: record.what for kind, record in KINDS.items() if record is not Flow and getattr(spec, kind)
    }
    if any(flow.transfer_bytes is not None for flow in spec.flows):
        found[Feature.TRANSFERS] = "transfers that follow each other"
    if any(flow.rate_bps is not None for flow in spec.flows):
        found[Feature.RATES] = "flows limited by their application"
    if spec.probes.capture:
        found[Feature.CAPTURE] = "captures"
    for end in (end.egress for link in spec.links for end in (link.a, link.b)):
        if end.impairment:
            found[Feature.IMPAIRMENTS] = "random loss and jitter"
        if end.card:
            found[Feature.CARDS] = "interrupt moderation and time for each packet"
        if end.clock_ppb or end.distance_ns:
            found[Feature.CLOCKS] = "drawn clocks and distances"
        if end.processing_ns:
            found[Feature.PROCESSING] = "a drawn processing time for each packet"
        if end.changes or end.trace:
            found[Feature.CHANGES] = "rates and delays that change"
        if end.policer:
            found[Feature.POLICERS] = "policers"
        if end.drops:
            found[Feature.DROPS] = "deliberate drops"
        if end.rate_bps is not None and end.queue.kind != "pfifo":
            found[Feature.RED if end.queue.kind == "red" else Feature.QUEUES] = f"queues of kind {end.queue.kind}"
            if "gentle" in end.queue.parameters:
                found[Feature.GENTLE] = "RED in gentle mode"
    if any(node.recovery == "reno" for node in spec.nodes):
        found[Feature.PLAIN_RENO] = "plain Reno, without NewReno's partial acknowledgments"
    if images := sorted({node.image for node in spec.nodes if node.image}):
        found[Feature.IMAGES] = f"hosts from the image {', '.join(map(repr, images))}"
    # A run that names its kernel where there was no digest for it pins the name itself.
    kernel = spec.pins.get("kernel", "")
    if kernel in KERNELS:
        found[Feature.KERNELS] = f"kernel {kernel!r}"
    elif OWN in kernel:
        found[Feature.KERNELS] = "kernel that a study adds an algorithm or a patch to"
    return found


@dataclass(frozen=True)
class Capabilities:
    """What a backend offers on this machine.

    ``ccas`` holds the congestion-control algorithms by their kernel names. ``reasons`` says why the backend
    cannot work here at all (no root, no KVM, ...); it is empty where the backend can.
    ``kernels`` has what a run pins that names its kernel, by that name; the others pin what ``pins`` says.
    ``sources`` says what the kernels that the project built were built of, by their digests.
    ``repeats`` says that a run which the laboratory reports as failed would fail in the same way again.
    """

    ccas: frozenset[str]
    reasons: tuple[str, ...] = ()
    kernels: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, KernelSource] = field(default_factory=dict)
    repeats: bool = False


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
        """Digests of what takes part in a run besides its spec: ``backend``, ``kernel``, ``image``, ``code``.

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
