# SPDX-License-Identifier: Apache-2.0
"""Gates of settings: each declared setting reads back as it was set."""

from __future__ import annotations

from collections.abc import Iterator

from longfat.spec.gates.evidence import Evidence
from longfat.spec.network import buffers_bytes, ports, steps

READ_BACK_SLACK = {"rate_bps": 0, "delay_ns": 0, "delay_us": 1, "processing_ns": 0}
"""tc truncates a delay, kept in ticks of 64 ns, to whole microseconds: 100 us read back as 99."""


def everything_was_read_back(evidence: Evidence) -> Iterator[str]:
    """Require each declared node, interface and flow; the other gates rely on them."""
    nodes = evidence.achieved["nodes"]
    reported = {report["flow"] for report in evidence.reports}
    yield from (f"node {node.name} was not read back" for node in evidence.spec.nodes if node.name not in nodes)
    for port in ports(evidence.spec):
        if port.name not in evidence.interfaces:
            yield f"interface {port.name} was not read back"
    for flow in evidence.spec.flows:
        if flow.name not in evidence.flows or flow.name not in reported:
            yield f"flow {flow.name} was not reported"


def sysctls_hold(evidence: Evidence) -> Iterator[str]:
    """Require each declared sysctl to read back as set; white space between numbers is ignored."""
    for node in evidence.spec.nodes:
        found = evidence.achieved["nodes"].get(node.name, {}).get("sysctls", {})
        for key, declared in sorted(node.sysctls.items()):
            value = found.get(key)
            if value is None or str(value).split() != str(declared).split():
                yield f"sysctl {key} of {node.name} is {value!r}, declared {declared!r}"


def offloads_hold(evidence: Evidence) -> Iterator[str]:
    """Require exactly the declared offloads to be on."""
    for node in evidence.spec.nodes:
        found = sorted(evidence.achieved["nodes"].get(node.name, {}).get("offloads_on", []))
        if found != sorted(node.offloads):
            yield f"offloads on at {node.name} are {found}, declared {sorted(node.offloads)}"


def mtu_holds(evidence: Evidence) -> Iterator[str]:
    """Require the declared MTU at each interface."""
    for port, found in evidence.present_ports():
        if found["mtu_bytes"] != port.mtu_bytes:
            yield f"MTU of {port.name} is {found['mtu_bytes']} B, declared {port.mtu_bytes} B"


def rate_and_delay_hold(evidence: Evidence) -> Iterator[str]:
    """Require the declared rate and delay at each interface, as exactly as they are read back; None and 0 are equal.

    A wire of the guest returns its delay in nanoseconds, which must be exact.
    """
    for port, found in evidence.present_ports():
        ways = steps(port.egress, evidence.spec.end_us)
        rate_bps, delay_ns = (ways[-1].rate_bps, ways[-1].delay_ns) if ways else (None, port.egress.wire_delay_ns)
        exact = "delay_ns" in found
        for key, unit, declared in (
            ("rate_bps", "bit/s", rate_bps or port.egress.wire_bps),
            ("delay_ns", "ns", delay_ns) if exact else ("delay_us", "us", delay_ns // 1000),
            *((("processing_ns", "ns", port.egress.processing_ns),) if exact else ()),
        ):
            if abs((found[key] or 0) - (declared or 0)) > READ_BACK_SLACK[key]:
                yield f"{key} of {port.name} is {found[key] or 0} {unit}, declared {declared or 0} {unit}"


def queue_holds(evidence: Evidence) -> Iterator[str]:
    """Require the declared queue kind and limits at each shaped interface; an unshaped one never queues."""
    for port, found in evidence.present_ports():
        queue = port.egress.queue
        if port.egress.rate_bps is None:
            continue
        if found["queue_kind"] != queue.kind:
            yield f"queue of {port.name} is {found['queue_kind']}, declared {queue.kind}"
            continue
        for limit, declared in (("limit_packets", queue.limit_packets), ("limit_bytes", queue.limit_bytes)):
            if declared is not None and found.get(limit) != declared:
                yield f"{limit} of {port.name} is {found.get(limit)}, declared {declared}"


def policers_hold(evidence: Evidence) -> Iterator[str]:
    """Require the declared rate and burst of each policer, within the 64 ns in which the kernel keeps a burst."""
    for port, found in evidence.present_ports():
        policer = port.egress.policer
        if policer is None:
            continue
        read = found.get("policer") or {}
        slack = 1 + policer.rate_bps * 64 // 8_000_000_000
        for key, unit, allowed in (("rate_bps", "bit/s", 7), ("burst_bytes", "bytes", slack)):
            value, declared = read.get(key), getattr(policer, key)
            if value is None or abs(value - declared) > allowed:
                yield f"{key} of the policer of {port.name} is {value} {unit}, declared {declared} {unit}"


def pauses_hold(evidence: Evidence) -> Iterator[str]:
    """Require the declared marks of each queue that pauses its senders."""
    for port, found in evidence.present_ports():
        if pause := port.egress.pause:
            read = found.get("pause", {})
            for key, declared in (("above", pause.above), ("below", pause.below)):
                if read.get(key) != declared:
                    yield f"pause {key} of {port.name} is {read.get(key)} packets, declared {declared} packets"


def cards_hold(evidence: Evidence) -> Iterator[str]:
    """Require the declared interrupts, time per packet and input queue of each card."""
    for port, found in evidence.present_ports():
        if port.egress.card is None:
            continue
        declared = [{k: v for k, v in one.items() if k != "latency"} for one in port.egress.card.settings()]
        if found.get("card") != declared:
            yield f"card of {port.peer} is {found.get('card')}, declared {declared}"


def algorithm_holds(evidence: Evidence) -> Iterator[str]:
    """Require the declared congestion control, with its declared parameters, on each flow's sockets."""
    for flow, found in evidence.present_flows():
        if found["cca"] != flow.cca:
            yield f"algorithm of {flow.name} is {found['cca']}, declared {flow.cca}"
            continue
        for name, declared in sorted(evidence.spec.cca_parameters(flow).items()):
            value = found["cca_parameters"].get(name)
            if str(value) != declared:
                yield f"{name} of {flow.cca} is {value} on the sockets of {flow.name}, declared {declared}"


def windows_hold(evidence: Evidence) -> Iterator[str]:
    """Require the socket buffers of the declared window: a kernel silently reduces buffers above its limits."""
    receiving = evidence.achieved.get("receive_buffers", {})
    for flow, sending in evidence.present_flows():
        found = sending.get("send_buffer_bytes"), receiving.get(flow.name)
        declared = buffers_bytes(evidence.spec, flow)
        for what, has, asked in zip(("send", "receive"), found, declared, strict=True):
            if asked is not None and has != asked:
                achieved = "was not read back" if has is None else f"is {has} B"
                yield f"{what} buffer of {flow.name} {achieved}, declared {asked} B"


def captures_are_complete(evidence: Evidence) -> Iterator[str]:
    """Require each declared capture, without a lost packet."""
    for file, (name, place) in evidence.spec.probes.captures.items():
        found = evidence.achieved["capture"].get(file)
        if found is None:
            yield f"{name} was not captured at its {place}, declared captured"
        elif found["dropped"]:
            yield f"the capture of {name} at its {place} lost {found['dropped']} packets, allowed 0"
