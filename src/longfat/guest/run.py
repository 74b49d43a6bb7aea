# SPDX-License-Identifier: Apache-2.0
"""The life of one run: build, start, sample, collect. Writes the raw files of docs/data.md.

Whatever goes wrong ends in outcome.json with status ``failed`` and the reason: a run is never half told.
"""

from __future__ import annotations

import platform
import subprocess
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from longfat.guest import traffic
from longfat.guest.captures import Captures
from longfat.guest.ccas import offered_ccas, refused_ccas
from longfat.guest.counters import difference, read_counters
from longfat.guest.drops import Drops
from longfat.guest.kinds.kind import traffic_of, write_reports
from longfat.guest.network import Maker, Network, Part, whole
from longfat.guest.pressure import others_us, pressure_us
from longfat.guest.probes import Probes, SeenSockets
from longfat.guest.reports import write_json
from longfat.guest.schedules import Schedules
from longfat.guest.stage import Stage
from longfat.guest.sysctls import LaboratoryError, restart_entropy
from longfat.guest.timeline import Timeline
from longfat.runspec import RunSpec

LEAD_NS = 100_000_000  # servers and captures are up at least this long before the measurement starts
ROUND_NS = 100_000_000  # the start falls on a multiple of it: what a run has to prepare moves no packet
CLOCK_US = 100_000  # how often the virtual clock is shown to the host, and 10,000 times at most in a run


class Meeting(Protocol):
    """Where the machines of a run wait for each other."""

    def start(self, network: Network) -> int:
        """Called when all is ready here; returns when the measurement starts everywhere, in ns of CLOCK_MONOTONIC.

        That is now or still to come.
        """

    def leave(self) -> None:
        """Called when everything has been read here; returns when no machine needs the others' ends of its links."""


class Alone:
    """The meeting of a machine that has the whole run."""

    def start(self, network: Network) -> int:
        """Leave servers and captures some time."""
        return -(-(time.monotonic_ns() + LEAD_NS) // ROUND_NS) * ROUND_NS

    def leave(self) -> None:
        """Nobody is there to wait for."""


def run(
    spec: RunSpec,
    folder: Path,
    scratch: Path,
    maker: Maker | None = None,
    part: Part | None = None,
    meeting: Meeting | None = None,
) -> None:
    """Execute ``spec`` and write its raw files into ``folder``. ``scratch`` is for what is not kept.

    ``maker`` says what hosts are made of; Mininet's network namespaces when it is None. Where other machines take
    part, ``part`` says what of the run is here; reports need the files of all of them and are not written then.
    """
    outcome: dict[str, Any] = {"status": "ok", "reason": None, "end_us": 0}
    timeline = Timeline(spec.end_us)
    try:
        offered = offered_ccas()
        write_json(folder / "environment.json", {"kernel_release": platform.release(), "ccas": offered})
        if reasons := refused_ccas(spec, offered):
            raise LaboratoryError("; ".join(reasons))
        for name in ("iperf", "captures", "outstanding", "throughput"):
            (folder / name).mkdir()
        seen = SeenSockets({port: name for name, port in traffic.ports(spec).items()})
        with Network(spec, scratch, maker, part or whole(spec)) as network, ExitStack() as cleanup:
            _measure(Stage(spec, network, cleanup, timeline, seen, folder, scratch), meeting or Alone())
        if part is None:
            write_reports(spec, folder)
    except (LaboratoryError, OSError, ValueError, subprocess.SubprocessError) as error:
        outcome.update(status="failed", reason=f"{type(error).__name__}: {error}")
        (folder / "traceback.txt").write_text(traceback.format_exc())
    outcome["end_us"] = timeline.now_us() if timeline.origin_ns else 0
    write_json(folder / "outcome.json", outcome)


def _measure(stage: Stage, meeting: Meeting) -> None:
    """Let everything happen that the run is, and write every file but environment.json, reports and outcome.json."""
    network, timeline = stage.network, stage.timeline
    counters_before = {node.name: read_counters(network, node.name) for node in network.nodes}
    drops_before = network.drops()
    kinds = traffic_of(stage)
    captures = Captures(stage, kinds)
    drops = Drops(network, timeline, stage.spec.links)
    schedules = Schedules(network, timeline, stage.cleanup)
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
    probes = _start_probes(stage)
    timeline.repeat(max(CLOCK_US, timeline.end_us // 10_000), stage.show_time)
    restart_entropy(stage.spec.seed)
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
    (stage.folder / "clock").unlink(missing_ok=True)
    for kind in kinds:
        achieved |= kind.achieved()
    achieved["cpu_pressure_us"] = pressure
    if others is not None:
        achieved["others_cpu_us"] = others
    achieved["memory_pressure"] = sum(c.get("TcpExt.TCPMemoryPressures", 0) for c in counters.values())
    write_json(stage.folder / "counters.json", counters)
    write_json(stage.folder / "achieved.json", achieved)
    meeting.leave()


def _start_probes(stage: Stage) -> Probes:
    asked, probes = stage.spec.probes, Probes(stage.folder, stage.cleanup)
    senders = [flow.sender for flow in stage.spec.flows if stage.here(flow.sender)]
    probes.sockets(stage.network, senders, stage.seen, asked.socket_interval_us)
    if asked.queue_interval_us:
        probes.queues(stage.network, asked.queue_interval_us)
        if stage.spec.marks:
            receivers = [flow.receiver for flow in stage.spec.flows if stage.here(flow.receiver)]
            probes.arrivals(stage.network, receivers, asked.queue_interval_us)
    ends_us = (flow.start_us + flow.duration_us for flow in stage.spec.flows if stage.here(flow.sender))
    probes.start(stage.timeline, ends_us)
    return probes
