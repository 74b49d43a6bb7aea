# SPDX-License-Identifier: Apache-2.0
"""The protocol of a backend, and its traits, which make the rest of the package independent of a backend's name.

tests/contract has the one suite that each backend must pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from longfat.spec.network import MIDDLE
from longfat.spec.runspec import KINDS, Flow, RunSpec
from longfat.study.catalog.kernels import KERNELS, OWN
from longfat.system.identity import KernelSource

HOLDER = f"{MIDDLE}h"
"""Beginning of the name of a node that holds packets back: its two links count as one (spec/network.py)."""


class Feature(StrEnum):
    """Abilities that only some backends have, in addition to kinds of traffic.

    Every backend has hosts, links, pfifo queues and TCP flows.
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
    PAUSES = "pause frames"
    GENTLE = "RED in gentle mode"
    PLAIN_RENO = "plain Reno, without NewReno's partial acknowledgments"
    IMAGES = "hosts made from container images"
    KERNELS = "named kernels"


FEATURES: frozenset[str] = frozenset(Feature) | {record.what for record in KINDS.values() if record is not Flow}
"""All abilities that only some backends have; a kind of traffic by its ``what``."""

BEYOND_KERNELS = frozenset({Feature.GENTLE, Feature.PLAIN_RENO})
"""Abilities that no Linux kernel has: the planner omits runs that need them unless the backend has them."""


@dataclass(frozen=True)
class Traits:
    """The properties of a backend that hold on any machine, before it is opened.

    Under a real ``clock`` a second takes a second, and runs are sequential. The ``kernel`` is the project's own, or the
    machine's, or none. ``can`` has its abilities. With ``guests`` each run needs the memory in its spec. With ``lab``
    it needs a lab. ``setup_s`` is the duration of a run without its traffic, in real time.
    """

    clock: Literal["virtual", "real"] = "virtual"
    kernel: Literal["own", "machine", "none"] = "own"
    can: frozenset[str] = FEATURES - BEYOND_KERNELS
    guests: bool = False
    lab: bool = False
    setup_s: float = 0.0

    @property
    def own_world(self) -> bool:
        """Whether it executes runs on the project's kernel in virtual time."""
        return self.clock == "virtual" and self.kernel == "own"


def needed(spec: RunSpec) -> dict[str, str]:
    """Return the abilities that a run needs, each with a description."""
    found: dict[str, str] = {
        record.what: record.what for kind, record in KINDS.items() if record is not Flow and getattr(spec, kind)
    }
    egresses = [end.egress for link in spec.links for end in (link.a, link.b)]
    queues = [egress.queue for egress in egresses if egress.rate_bps is not None and egress.queue.kind != "pfifo"]
    holding = any(end.egress.card and end.node.startswith(HOLDER) for link in spec.links for end in (link.a, link.b))
    uses = {
        Feature.TRANSFERS: any(flow.transfer_bytes is not None for flow in spec.flows),
        Feature.RATES: any(flow.rate_bps is not None for flow in spec.flows),
        Feature.CAPTURE: bool(spec.probes.capture),
        Feature.IMPAIRMENTS: any(egress.impairment for egress in egresses),
        Feature.CARDS: any(egress.card for egress in egresses),
        Feature.CLOCKS: any(egress.clock_ppb or egress.distance_ns for egress in egresses),
        Feature.PROCESSING: any(egress.processing_ns for egress in egresses),
        Feature.CHANGES: any(egress.changes or egress.trace for egress in egresses),
        Feature.POLICERS: any(egress.policer for egress in egresses),
        Feature.PAUSES: any(egress.pause for egress in egresses),
        Feature.DROPS: any(egress.drops for egress in egresses),
        Feature.GENTLE: any("gentle" in queue.parameters for queue in queues),
        Feature.PLAIN_RENO: any(node.recovery == "reno" for node in spec.nodes),
    }
    found |= {feature: str(feature) for feature, used in uses.items() if used}
    if holding:
        found[Feature.CARDS] = "aggregation of packets"
    for queue in queues:
        found[Feature.RED if queue.kind == "red" else Feature.QUEUES] = f"queues of kind {queue.kind}"
    if images := sorted({node.image for node in spec.nodes if node.image}):
        found[Feature.IMAGES] = f"hosts from the image {', '.join(map(repr, images))}"
    # A run whose kernel had no digest yet pins its name.
    kernel = spec.pins.get("kernel", "")
    if kernel in KERNELS:
        found[Feature.KERNELS] = f"kernel {kernel!r}"
    elif OWN in kernel:
        found[Feature.KERNELS] = "kernel that a study adds an algorithm or a patch to"
    return found


@dataclass(frozen=True)
class Capabilities:
    """Abilities of a backend on this machine.

    ``ccas`` has the congestion controls by their kernel names. ``reasons`` states why the backend cannot work here at
    all, if it cannot. ``kernels`` has the pin of each named kernel; runs that name no kernel pin the kernel of
    ``pins``. ``sources`` has the source of each kernel that the project built, by digest. If it ``repeats``, a failed
    run would fail again.
    """

    ccas: frozenset[str]
    reasons: tuple[str, ...] = ()
    kernels: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, KernelSource] = field(default_factory=dict)
    repeats: bool = False


class Backend(Protocol):
    """Executor of runs.

    Several threads share one object, which contains settings and digests, never open handles. A setting outside the
    RunSpec may change the outcome of a run only if ``pins`` shows it.
    """

    @property
    def name(self) -> str:
        """Its name in ``--backend``, in the pins and in ``run.json``."""

    def pins(self) -> dict[str, str]:
        """Return the pins of runs: name of the backend, digests of ``kernel``, ``image`` and ``code``.

        Called once, before the plan is resolved; they become part of each RunSpec and so of its run_id. May build or
        unpack missing parts. Raises RigError if that fails.
        """

    def capabilities(self) -> Capabilities:
        """Return the abilities on this machine. Called once before the first run; must not change the machine."""

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Return the reasons against this run as declared; empty if it can be executed.

        Called for each run before the first one starts; must be quick and must not change the machine. A setting that
        cannot be realised is refused here, never ignored later.
        """

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Execute one run and write the guest's files of docs/data.md into ``folder``.

        ``folder`` exists and contains only ``spec.json``. The run writes nowhere else on the host, except temporary
        files, which are removed at the return. Writes neither ``spec.json`` nor ``run.json`` nor ``SHA256SUMS``. All
        started processes end before the return, and when this process is killed; if they are killed to stop the run, it
        raises. Raises RigError on a crash of the run, and OSError on a full disk.
        """
