# SPDX-License-Identifier: Apache-2.0
"""A backend with known truth: writes the files of a guest, computed by ``fake_truth`` instead of measured.

It is registered as ``fake`` when this module is imported: here by ``conftest``, in processes by ``sitecustomize``. Its
iperf2 texts and captures are placeholders of the right form. Same RunSpec, same bytes. It can fail as a guest fails.
"""

from __future__ import annotations

import errno
import hashlib
import os
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import fake_truth as truth

from longfat.backends import simulated
from longfat.backends.protocol import BEYOND_KERNELS, Capabilities, Feature, Traits
from longfat.backends.registry import MODULES, Say, refused_features
from longfat.guest.capture import THINNED_US, thinned
from longfat.guest.ccas import refused_ccas
from longfat.guest.udp import due_bytes
from longfat.spec.network import (
    ETHERNET_HEADER_BYTES,
    Port,
    base_rtt_us,
    impairment_seed,
    lay_out,
    mss_bytes,
    ports,
    route,
    smallest_mtu_bytes,
    steps,
)
from longfat.spec.plain import canonical_json
from longfat.spec.runspec import Flow, Ping, RunSpec, Udp, Web
from longfat.study.catalog.ccas import CCAS
from longfat.study.catalog.kernels import KERNELS, STACK_KERNELS, OwnKernel
from longfat.system.errors import RigError
from longfat.system.identity import KernelSource, code_identity
from longfat.system.parent import end_with_parent

TRAFFIC = {Web.what, Udp.what, Ping.what}  # in addition to flows
NOT_DRAWN = {Feature.CLOCKS, Feature.PROCESSING}
TRAITS = {"fake": Traits(can=frozenset(Feature) - BEYOND_KERNELS - NOT_DRAWN | TRAFFIC)}
FOLDER = Path(__file__).parent
SLOW_START_SSTHRESH = 2147483647  # TCP_INFINITE_SSTHRESH of the Linux kernel
ESTABLISHED, OPEN = 1, 0  # TCP_ESTABLISHED and TCP_CA_Open, as tcp_info has them
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)  # Ethernet, 128 bytes a packet

Fault = Literal["crash", "disk_full", "report_failure", "starve"]


@dataclass(frozen=True)
class FakeBackend:
    """See the module; all settings have harmless defaults.

    ``wall_seconds`` makes each run take that long. ``faults`` names, by run_id, runs that raise RigError,
    lose their guest, raise ENOSPC, report a failure in outcome.json, or had no CPU; with a ``once`` folder
    each strikes only the first time. ``achieved_rate_factor`` falsifies the rates in achieved.json. ``kernel`` is the
    release that it pretends to be built of, ``repeats`` whether a reported failure would come again.
    """

    wall_seconds: float = 0.0
    faults: Mapping[str, Fault] = field(default_factory=dict)
    once: Path | None = None
    achieved_rate_factor: float = 1.0
    kernel: KernelSource | None = None
    repeats: bool = False
    name: str = field(default="fake", init=False)

    def pins(self) -> dict[str, str]:
        """There is no kernel and no image; ``code`` covers the code of the truth and the falsified rate."""
        code = code_identity(FOLDER, [FOLDER / "fake_backend.py", FOLDER / "fake_truth.py"])
        digest = hashlib.sha256(f"{code} {self.achieved_rate_factor!r}".encode()).hexdigest()
        return {"backend": self.name, "kernel": "none", "image": "none", "code": digest}

    def capabilities(self) -> Capabilities:
        """Everything, everywhere: a named kernel is no more than its name."""
        sources = {"none": self.kernel} if self.kernel else {}
        kernels = {name: "none" if name in STACK_KERNELS else name for name in KERNELS}
        return Capabilities(frozenset(CCAS), kernels=kernels, sources=sources, repeats=self.repeats)

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Unknown algorithms, unreachable receivers, and flows that nothing limits."""
        reasons = [*refused_ccas(spec, CCAS), *refused_features(self.name, spec)]
        for flow in spec.flows:
            if not route(spec, flow.sender, flow.receiver):
                reasons.append(f"flow {flow.name!r}: no route from {flow.sender!r} to {flow.receiver!r}")
            elif truth.goodput_limit_bps(spec, flow) is None:
                reasons.append(f"flow {flow.name!r}: neither a rate nor a window over an RTT limits it")
        return tuple(reasons)

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Write the files of docs/data.md as ``fake_truth`` has them."""
        if self.wall_seconds:  # as a guest takes time: a child process that can be killed
            subprocess.run(["sleep", str(self.wall_seconds)], preexec_fn=end_with_parent, check=True)
        fault = self._fault_of(spec.run_id)
        if fault == "crash":
            raise RigError("the fake laboratory crashed, as it was told to")
        if fault == "disk_full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        outcome = {"status": "ok", "reason": None, "end_us": spec.end_us}
        if fault == "report_failure":
            outcome = {"status": "failed", "reason": "GuestError: iperf2 found no server", "end_us": 0}
        achieved = self._achieved(spec)
        if fault == "starve":
            achieved["cpu_pressure_us"] = spec.end_us * 9 // 10
        files = {
            "outcome.json": canonical_json(outcome),
            "environment.json": canonical_json({"kernel_release": "fake", "ccas": sorted(CCAS)}),
            "achieved.json": canonical_json(achieved),
            "flows.json": canonical_json([_flow_report(spec, flow) for flow in spec.flows]),
            "counters.json": canonical_json(_counters(spec)),
            "sockets.csv": _sockets(spec),
            "queues.csv": _queues(spec),
        }
        if spec.udp:
            files["udp.json"] = canonical_json([_udp_report(spec, one) for one in spec.udp])
        if spec.udp and spec.probes.queue_interval_us:
            files["datagrams.csv"] = _datagrams(spec, spec.probes.queue_interval_us)
        if spec.probes.ping_interval_us:
            files["pings.csv"] = _pings(spec, spec.probes.ping_interval_us)
        if spec.web:
            files["web.json"] = canonical_json([_web_report(users) for users in spec.web])
        if spec.marks and spec.probes.queue_interval_us:
            files["arrivals.csv"] = _arrivals(spec, spec.probes.queue_interval_us)
        for flow in spec.flows:
            rate = truth.goodput_bps(spec, flow)
            files[f"iperf/{flow.name}.client.txt"] = f"fake iperf2 client of {flow.name}\n"
            files[f"iperf/{flow.name}.server.txt"] = f"fake iperf2 server of {flow.name}: {rate:.0f} bits/sec\n"
            if flow in spec.traced:
                files[f"outstanding/{flow.name}.csv"] = _outstanding(spec, flow)
                files[f"throughput/{flow.name}.csv"] = _throughput(spec, flow)
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        for name in spec.probes.captures:
            (folder / "captures").mkdir(exist_ok=True)
            (folder / "captures" / f"{name}.pcap").write_bytes(PCAP_HEADER)

    def _fault_of(self, run_id: str) -> Fault | None:
        fault = self.faults.get(run_id)
        if fault is None or self.once is None:
            return fault
        marker = self.once / run_id
        if marker.exists():
            return None
        marker.touch()
        return fault

    def _achieved(self, spec: RunSpec) -> dict[str, object]:
        found = simulated.achieved(spec)
        for port, one in zip(lay_out(spec).all_ports(), found["interfaces"], strict=True):
            if one["rate_bps"] is not None:
                one["rate_bps"] = round(one["rate_bps"] * self.achieved_rate_factor)
            one |= drawn(spec, port) | followed(spec, port)
        found["capture"] = {name: {"captured": 0, "dropped": 0, "removed": 0} for name in spec.probes.captures}
        return found | ({"web": [{"web": one.name, "ccas": [one.cca]} for one in spec.web]} if spec.web else {})


def _ends(one: Flow | Udp | Web) -> dict[str, object]:
    times = {"start_us": one.start_us, "end_us": one.start_us + one.duration_us}
    return {"sender": one.sender, "receiver": one.receiver, **times}


def _flow_report(spec: RunSpec, flow: Flow) -> dict[str, object]:
    amount = truth.received_bytes(spec, flow, flow.start_us + flow.duration_us)
    complete = {} if flow.transfer_bytes is None else {"transfers": amount // flow.transfer_bytes}
    return {
        "flow": flow.name,
        "cca": flow.cca,
        **_ends(flow),
        "bytes_sent": amount,
        "bytes_received": amount,
        "goodput_bps": truth.goodput_bps(spec, flow),
        **complete,
        **({} if flow.rate_bps is None else {"bytes_due": amount, "blocked_us": 0}),
    }


def _web_report(users: Web) -> dict[str, object]:
    replies = truth.web_replies(users)
    return {
        "web": users.name,
        "cca": users.cca,
        **_ends(users),
        "model": users.model,
        "users": users.users,
        "bytes_received": replies * truth.WEB_REPLY_BYTES,
        "replies": replies,
        "unfinished": 0,
        "mean_reply_us": truth.WEB_REPLY_US,
        "errors": {},
    }


def _counters(spec: RunSpec) -> dict[str, dict[str, int]]:
    counters: dict[str, dict[str, int]] = {node.name: {} for node in spec.nodes}
    for flow in spec.flows:
        segments = truth.received_bytes(spec, flow, spec.end_us) // mss_bytes(spec, flow)
        drops = len(truth.drop_times_us(spec, flow))
        for key, count in (("Tcp.OutSegs", segments + drops), ("Tcp.RetransSegs", drops)):
            if count:
                counters[flow.sender][key] = counters[flow.sender].get(key, 0) + count
    return counters


def _sockets(spec: RunSpec) -> str:
    rows = []
    step = spec.probes.socket_interval_us
    for flow in spec.flows if step else ():
        rtt_us = base_rtt_us(spec, flow)
        pipe = truth.pipe_segments(spec, flow)
        drops = truth.drop_times_us(spec, flow)
        dwnd = "0" if flow.cca == "compound" else ""  # the truth's window is all cwnd
        for t_us in range(0, spec.end_us, step or 1):
            if not flow.start_us <= t_us < flow.start_us + flow.duration_us:
                continue
            past = sum(at <= t_us for at in drops)
            ssthresh = max(1, pipe // 2) if past else SLOW_START_SSTHRESH
            acked = truth.received_bytes(spec, flow, t_us) // flow.streams
            delivered = acked // mss_bytes(spec, flow)
            for stream in range(flow.streams):
                rows.append(
                    f"{t_us},{flow.name},{stream},{ESTABLISHED},{OPEN},{pipe},{ssthresh},{pipe},{rtt_us},{rtt_us},"
                    f"{past if stream == 0 else 0},0,{acked},{delivered},{dwnd}\n"
                )
    return simulated.SOCKET_COLUMNS + "".join(rows)


def _queues(spec: RunSpec) -> str:
    rows = []
    step = spec.probes.queue_interval_us
    ways = [(flow, route(spec, flow.sender, flow.receiver)) for flow in spec.flows]
    for t_us in range(0, spec.end_us, step) if step else ():
        for port in ports(spec):
            crossing = (flow for flow, way in ways if port in way)
            packets = sum(truth.received_bytes(spec, flow, t_us) // mss_bytes(spec, flow) for flow in crossing)
            octets = packets * (port.mtu_bytes + ETHERNET_HEADER_BYTES)
            rows.append(f"{t_us},{port.node},{port.name},{port.egress.queue.kind},0,0,0,{packets},{octets},0\n")
    return simulated.QUEUE_COLUMNS + "".join(rows)


def _arrivals(spec: RunSpec, step_us: int) -> str:
    """Every full segment arrives, and nothing is marked: the truth has no queue that grows."""
    rows = []
    for t_us in range(0, spec.end_us, step_us):
        for node in sorted({flow.receiver for flow in spec.flows}):
            own = [flow for flow in spec.flows if flow.receiver == node]
            count = sum(truth.received_bytes(spec, flow, t_us) // mss_bytes(spec, flow) for flow in own)
            rows.append(f"{t_us},{node},{count},0\n")
    return "t_us,node,packets,marked_packets\n" + "".join(rows)


def _udp_report(spec: RunSpec, one: Udp) -> dict[str, object]:
    size = smallest_mtu_bytes(spec)
    count = round(due_bytes(asdict(one), one.duration_us / 1e6) / size)
    return {
        "udp": one.name,
        **_ends(one),
        "packet_bytes": size,
        **dict.fromkeys(("due_packets", "sent_packets", "received_packets", "arrived_packets"), count),
    }


def _datagrams(spec: RunSpec, step_us: int) -> str:
    """Every packet of the mean rate arrives at once; the rate does not swing here."""
    size = smallest_mtu_bytes(spec)
    rows = []
    for t_us in range(step_us, spec.end_us, step_us):
        for one in spec.udp:
            sent_us = min(max(0, t_us - one.start_us), one.duration_us)
            packets = one.mean_bps * sent_us // 8_000_000 // size
            rows.append(f"{t_us},{one.name},{packets},{packets * size}\n")
    return "t_us,udp,received_packets,received_bytes\n" + "".join(rows)


def _pings(spec: RunSpec, step_us: int) -> str:
    """The truth has no queue: each ping takes the base RTT."""
    rtt_us = base_rtt_us(spec, spec.pings[0])
    return "t_us,rtt_us\n" + "".join(f"{t_us},{rtt_us}\n" for t_us in range(0, spec.end_us, step_us))


def _outstanding(spec: RunSpec, flow: Flow) -> str:
    mss = mss_bytes(spec, flow)
    rows = (f"{t},{count * mss}\n" for t, count in truth.outstanding_segments(spec, flow))
    return "t_us,outstanding_bytes\n" + "".join(rows)


def _throughput(spec: RunSpec, flow: Flow) -> str:
    points = thinned(truth.throughput_bytes_per_s(spec, flow), THINNED_US)
    return "t_us,bytes_per_s\n" + "".join(f"{t},{value}\n" for t, value in points)


MODULES["fake"] = "fake_backend"


def open_backend(
    name: str, say: Say, kernels: Sequence[str] = (), own: Mapping[str, OwnKernel] | None = None, **settings: Any
) -> FakeBackend:
    """The backend with these settings; it has any kernel."""
    return FakeBackend(**settings)


def followed(spec: RunSpec, port: Port) -> dict[str, Any]:
    """Return policer and marks, and the wire after all its steps, as read back without traffic."""
    ways = steps(port.egress, spec.end_us)
    policed = {"policer": asdict(port.egress.policer) | {"drops": 0}} if port.egress.policer else {}
    if port.egress.pause:
        policed |= {"pause": asdict(port.egress.pause) | {"pauses": 0}}
    if not ways:
        return policed
    last = {"rate_bps": ways[-1].rate_bps or None, "delay_us": ways[-1].delay_ns // 1000}
    return policed | last | {"steps": len(ways), "late_ns": 0, "offered_bits": 0, "taken_bytes": 0}


def drawn(spec: RunSpec, port: Port) -> dict[str, Any]:
    """Return the impaired delay element, or the card, as read back without traffic."""
    if port.egress.card:
        return {"card": [{k: v for k, v in one.items() if k != "latency"} for one in port.egress.card.settings()]}
    if not port.egress.impairment:
        return {}
    return {
        "impairment": port.egress.impairment.settings() | {"seed": impairment_seed(spec, port)},
        "passed_packets": 0,
    }
