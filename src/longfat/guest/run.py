# SPDX-License-Identifier: Apache-2.0
"""The life of one run: build, start, sample, collect. Writes the raw files of docs/data.md.

Every failure ends in outcome.json with status ``failed`` and the reason.
"""

from __future__ import annotations

import platform
import subprocess
import time
import traceback
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Protocol

from longfat.guest import traffic
from longfat.guest.capture import Captures
from longfat.guest.ccas import offered_ccas, refused_ccas
from longfat.guest.counters import difference, others_us, pressure_us, read_counters
from longfat.guest.drops import Drops
from longfat.guest.files import write_json
from longfat.guest.kinds.kind import traffic_of, write_reports
from longfat.guest.network import Maker, Network, Part
from longfat.guest.probes import Probes, SeenSockets
from longfat.guest.processes import drain_s
from longfat.guest.schedules import Schedules
from longfat.guest.sysctls import GuestError, restart_entropy
from longfat.guest.timeline import Timeline
from longfat.spec.runspec import RunSpec

LEAD_NS = 100_000_000  # time of servers and captures before the start of the measurement, at least
ROUND_NS = 100_000_000  # the start is a multiple of it, so that the duration of the preparation moves no packet
CLOCK_US = 100_000  # interval of the virtual clock's display to the host, 10,000 times at most in a run


@dataclass(frozen=True)
class RunContext:
    """A run with its network and time line on this machine, and the observations of the socket probe.

    Raw files go to ``folder``, temporary files to ``scratch``. ``cleanup`` ends everything that outlives the run.
    """

    spec: RunSpec
    network: Network
    cleanup: ExitStack
    timeline: Timeline
    seen: SeenSockets
    folder: Path
    scratch: Path

    def here(self, node: str) -> bool:
        """Return whether the node is on this machine."""
        return node in self.network.ports

    def output(self, name: str) -> IO[bytes]:
        """Open a raw file for the output of a program."""
        return self.cleanup.enter_context((self.folder / name).open("wb"))

    @cached_property
    def drain_s(self) -> float:
        """Longest time that a program may run after its end, in seconds."""
        return drain_s(self.spec)

    def show_time(self) -> None:
        """Show the host that the run continues: it ends a guest whose clock stands still."""
        (self.folder / "clock").write_text(str(self.timeline.now_us()))


class Meeting(Protocol):
    """Synchronisation of the machines of a run."""

    def start(self, network: Network) -> int:
        """Wait until every machine is ready; return the start of the measurement in ns of CLOCK_MONOTONIC.

        The start may be in the future.
        """

    def leave(self) -> None:
        """After everything has been read here, wait until no machine needs this end of a link."""


class Alone:
    """The meeting of a machine that executes the whole run."""

    def start(self, network: Network) -> int:
        """Return a start that leaves servers and captures some time."""
        return -(-(time.monotonic_ns() + LEAD_NS) // ROUND_NS) * ROUND_NS

    def leave(self) -> None:
        """Return at once."""


def run(
    spec: RunSpec,
    folder: Path,
    scratch: Path,
    maker: Maker | None = None,
    part: Part | None = None,
    meeting: Meeting | None = None,
) -> None:
    """Execute ``spec`` and write its raw files into ``folder``. ``scratch`` is for temporary files.

    ``maker`` makes the hosts, by default as network namespaces. ``part`` is this machine's part of a run on several
    machines; reports need the files of all machines, and are not written then.
    """
    outcome: dict[str, Any] = {"status": "ok", "reason": None, "end_us": 0}
    timeline = Timeline(spec.end_us)
    try:
        offered = offered_ccas()
        write_json(folder / "environment.json", {"kernel_release": platform.release(), "ccas": offered})
        if reasons := refused_ccas(spec, offered):
            raise GuestError("; ".join(reasons))
        for name in ("iperf", "captures", "outstanding", "throughput"):
            (folder / name).mkdir()
        seen = SeenSockets({port: name for name, port in traffic.ports(spec).items()})
        with Network(spec, scratch, maker, part) as network, ExitStack() as cleanup:
            _measure(RunContext(spec, network, cleanup, timeline, seen, folder, scratch), meeting or Alone())
        if part is None:
            write_reports(spec, folder)
    except (GuestError, OSError, ValueError, subprocess.SubprocessError) as error:
        outcome.update(status="failed", reason=f"{type(error).__name__}: {error}")
        (folder / "traceback.txt").write_text(traceback.format_exc())
    outcome["end_us"] = timeline.now_us() if timeline.origin_ns else 0
    write_json(folder / "outcome.json", outcome)


def _measure(context: RunContext, meeting: Meeting) -> None:
    """Execute the run, and write every file except environment.json, reports and outcome.json."""
    network, timeline = context.network, context.timeline
    counters_before = {node.name: read_counters(network, node.name) for node in network.nodes}
    drops_before = network.drops()
    kinds = traffic_of(context)
    captures = Captures(context, kinds)
    drops = Drops(network, timeline, context.spec.links)
    schedules = Schedules(network, timeline, context.cleanup)
    captures.start()
    for kind in kinds:
        kind.prepare()
    timeline.begin(meeting.start(network))
    pressure_before = pressure_us()
    others_before = None if pressure_before is None else others_us()

    for kind in kinds:
        kind.plan()
    drops.plan()
    schedules.plan()
    probes = _start_probes(context)
    timeline.repeat(max(CLOCK_US, timeline.end_us // 10_000), context.show_time)
    restart_entropy(context.spec.seed)
    timeline.play()
    followed = schedules.finish()
    pressure = None if pressure_before is None else (pressure_us() or 0) - pressure_before
    others = None if others_before is None else max(0, (others_us() or 0) - others_before)

    for kind in kinds:
        kind.finish()
    probes.finish(timeline)
    schedules.end()
    achieved = network.achieved(drops_before)
    for interface in achieved["interfaces"]:
        interface["deliberate_drops"] = drops.happened.get(interface["interface"], 0)
        interface |= followed.get(interface["interface"], {})
    counters = {
        node.name: difference(counters_before[node.name], read_counters(network, node.name)) for node in network.nodes
    }
    achieved["capture"] = captures.finish()
    (context.folder / "clock").unlink(missing_ok=True)
    for kind in kinds:
        achieved |= kind.achieved()
    achieved["cpu_pressure_us"] = pressure
    if others is not None:
        achieved["others_cpu_us"] = others
    achieved["memory_pressure"] = sum(c.get("TcpExt.TCPMemoryPressures", 0) for c in counters.values())
    write_json(context.folder / "counters.json", counters)
    write_json(context.folder / "achieved.json", achieved)
    meeting.leave()


def _start_probes(context: RunContext) -> Probes:
    asked, probes = context.spec.probes, Probes(context.folder, context.cleanup)
    senders = [flow.sender for flow in context.spec.flows if context.here(flow.sender)]
    probes.sockets(context.network, senders, context.seen, asked.socket_interval_us)
    if asked.queue_interval_us:
        probes.queues(context.network, asked.queue_interval_us)
        if context.spec.marks:
            receivers = [flow.receiver for flow in context.spec.flows if context.here(flow.receiver)]
            probes.arrivals(context.network, receivers, asked.queue_interval_us)
    many = traffic.crowd(context.spec)  # a sample of all sockets at each end would be quadratic
    ends_us = (
        flow.start_us + flow.duration_us
        for flow in context.spec.flows
        if context.here(flow.sender) and flow.name not in many
    )
    probes.start(context.timeline, ends_us)
    return probes
