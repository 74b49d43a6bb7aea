# SPDX-License-Identifier: Apache-2.0
"""The validity gates: a run counts only if what was declared was achieved. Those of one kind of traffic are with it.

Owns what makes a run ``invalid`` and the text that says why. Pure functions of the RunSpec and of what was
read back (``achieved.json``, ``flows.json``); reads no files and changes no numbers. One function a gate;
each yields a reason with the achieved and the declared value for every miss, and nothing when all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import ceil, inf
from typing import Any

from longfat.network import (
    IP_AND_TCP_HEADER_BYTES,
    Port,
    Step,
    base_rtt_us,
    buffers_bytes,
    capacity_bits,
    has_timestamps,
    impairment_seed,
    ports,
    route,
    steps,
)
from longfat.runspec import Flow, RunSpec

# A base RTT may exceed the declared delays by the time that full packets and their acknowledgements need
# on the shaped links, by 5 % and by 1 ms: the smallest RTT a socket sees may include packets already queued
# when it starts, and real-time backends wake up late. Less than the declared delay is never right.
RTT_TOLERANCE = 0.05
RTT_ALLOWANCE_US = 1000
# After a loss the sample of an RTT comes from timestamps, whose clock has whole milliseconds (RFC 7323,
# tcp_rtt_tsopt_us in net/ipv4/tcp_input.c).
TIMESTAMP_US = 1000
# iperf2's receiver starts its clock at the first read, when up to a queue of packets may be behind it.
GOODPUT_TOLERANCE = 0.01
# Share of the time in which some task that could run had no CPU because of others. On two idle cores a run's own
# programs wait for each other about 10 % of it at 100 Mbit/s; four busy loops beside it make that 84 %.
STARVED_SHARE = 0.25


@dataclass(frozen=True)
class Evidence:
    """What a gate may look at: RunSpec, ``achieved.json``, the list of ``flows.json``, the run's end.

    ``told`` has what programs of further kinds of traffic reported, by the table that it is to become.
    """

    spec: RunSpec
    achieved: Mapping[str, Any]
    reports: Sequence[Mapping[str, Any]]
    told: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    end_us: int | None = None

    @cached_property
    def interfaces(self) -> dict[str, Mapping[str, Any]]:
        """What was read back of each interface, by its name."""
        return {item["interface"]: item for item in self.achieved["interfaces"]}

    @cached_property
    def flows(self) -> dict[str, Mapping[str, Any]]:
        """What was read back of each flow's sockets, by the flow's name."""
        return {item["flow"]: item for item in self.achieved["flows"]}

    def present_ports(self) -> Iterator[tuple[Port, Mapping[str, Any]]]:
        """Declared interfaces with what was read back; those not read back are the first gate's matter."""
        for port in ports(self.spec):
            if port.name in self.interfaces:
                yield port, self.interfaces[port.name]


def everything_was_read_back(evidence: Evidence) -> Iterator[str]:
    """Each declared node, interface and flow must be there; the other gates rely on it."""
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
    """Each declared sysctl reads back as it was set; white space between numbers does not matter."""
    for node in evidence.spec.nodes:
        found = evidence.achieved["nodes"].get(node.name, {}).get("sysctls", {})
        for key, declared in sorted(node.sysctls.items()):
            value = found.get(key)
            if value is None or str(value).split() != str(declared).split():
                yield f"sysctl {key} of {node.name} is {value!r}, declared {declared!r}"


def offloads_hold(evidence: Evidence) -> Iterator[str]:
    """Exactly the declared offloads are on."""
    for node in evidence.spec.nodes:
        found = sorted(evidence.achieved["nodes"].get(node.name, {}).get("offloads_on", []))
        if found != sorted(node.offloads):
            yield f"offloads on at {node.name} are {found}, declared {sorted(node.offloads)}"


def mtu_holds(evidence: Evidence) -> Iterator[str]:
    """The MTU of each interface is the declared one."""
    for port, found in evidence.present_ports():
        if found["mtu_bytes"] != port.mtu_bytes:
            yield f"MTU of {port.name} is {found['mtu_bytes']} B, declared {port.mtu_bytes} B"


READ_BACK_SLACK = {"rate_bps": 0, "delay_ns": 0, "delay_us": 1, "processing_ns": 0}
"""tc shows a delay in ticks of 64 ns cut to whole microseconds: 100 us set exactly read back as 99."""


def rate_and_delay_hold(evidence: Evidence) -> Iterator[str]:
    """Shaper rate and delay of each interface read back equal but for the reading's slack; None and 0 mean none.

    A wire of the guest returns its delay in nanoseconds, and must have exactly the drawn one.
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


CARRIED_SLACK = 0.005
SHORTEST_FRAME_BYTES = 54  # headers of Ethernet, IPv4 and TCP


def busy_wires_carry_their_rate(evidence: Evidence) -> Iterator[str]:
    """While a wire had frames to take it took its rate, to half a percent and a frame.

    Wires of the guest count both; a shaper made of qdiscs cannot tell when it was idle. A frame that finds a wire idle
    takes whole nanoseconds, the part of one that is left over is dropped: what is busy for less may be so by as many
    nanoseconds as there can have been frames.
    """
    for port, found in evidence.present_ports():
        rate_bps = port.egress.wire_bps
        if rate_bps is None or "busy_ns" not in found or steps(port.egress, evidence.spec.end_us):
            continue
        needed_ns = found["sent_bytes"] * 8e9 / rate_bps
        late_ns, slack_ns = found["busy_ns"] - needed_ns, CARRIED_SLACK * needed_ns + 1000 * _serialization_us(port)
        frames = found["sent_bytes"] / (SHORTEST_FRAME_BYTES + port.egress.framing_bytes)
        if not -slack_ns - frames <= late_ns <= slack_ns:
            carried_bps = found["sent_bytes"] * 8e9 / max(found["busy_ns"], 1)
            yield f"{port.name} carried {carried_bps:.0f} bit/s while it was busy, declared {rate_bps} bit/s"


LATEST_STEP_NS = 1000


def changing_wires_follow_their_steps(evidence: Evidence) -> Iterator[str]:
    """Each step of a wire was done in its microsecond, and what left is what could leave while there were frames.

    That is to half a percent and a frame, and no more than the steps, added up, let leave in the whole measurement.
    """
    end_us = evidence.spec.end_us
    for port, found in evidence.present_ports():
        ways = steps(port.egress, end_us)
        if not ways:
            continue
        if found["steps"] != len(ways):
            yield f"{port.name} did {found['steps']} steps, declared {len(ways)}"
        if found["late_ns"] > LATEST_STEP_NS:
            yield f"a step of {port.name} was {found['late_ns']} ns late, allowed {LATEST_STEP_NS} ns"
        if not all(way.rate_bps for way in ways):
            continue  # a wire without a rate has nothing to count
        taken, offered, frame = 8 * found["taken_bytes"], found["offered_bits"], 8 * port.frame_bytes
        if abs(taken - offered) > CARRIED_SLACK * offered + frame:
            yield f"{port.name} carried {taken} bits, its steps offered {offered} while it was busy"
        most = capacity_bits(ways, end_us) + frame
        if taken > most:
            yield f"{port.name} carried {taken} bits, its steps let {most} leave at most"


def queue_holds(evidence: Evidence) -> Iterator[str]:
    """Queue kind and limits of each shaped interface read back equal; an unshaped one never queues."""
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
    """Rate and burst of each policer read back equal, but for the tick of 64 ns in which the kernel keeps a burst."""
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


LOSS_DEVIATIONS = 6


def impairment_holds(evidence: Evidence) -> Iterator[str]:
    """Loss, jitter and seed of each delay element read back equal, and as many packets were lost as that makes likely.

    Independent losses are binomial, and six standard deviations are exceeded in one run of 500 million. How many are
    lost in bursts depends on few draws: it is not judged.
    """
    for port, found in evidence.present_ports():
        impairment = port.egress.impairment
        if impairment is None:
            continue
        declared = impairment.settings() | {"seed": impairment_seed(evidence.spec, port)}
        read = found.get("impairment", {})
        for key, value in declared.items():
            if read.get(key) != value:
                yield f"{key} of {port.name} is {read.get(key)}, declared {value}"
        if not impairment.bursts:
            lost, share = found["drops"], impairment.loss_ppm / 1e6
            packets = lost + found["passed_packets"]
            likely = LOSS_DEVIATIONS * (packets * share * (1 - share)) ** 0.5
            if abs(lost - packets * share) > likely:
                around = f"{packets * share:.0f} +- {likely:.0f}"
                yield f"{port.name} lost {lost} of {packets} packets, declared {share:.4%}: {around}"


def cards_hold(evidence: Evidence) -> Iterator[str]:
    """The interrupts, the time for a packet and the input queue of each card read back equal."""
    for port, found in evidence.present_ports():
        if port.egress.card is None:
            continue
        declared = [{k: v for k, v in one.items() if k != "latency"} for one in port.egress.card.settings()]
        if found.get("card") != declared:
            yield f"card of {port.peer} is {found.get('card')}, declared {declared}"


def base_rtt_holds(evidence: Evidence) -> Iterator[str]:
    """The smallest RTT of each flow lies between the declared delay and the tolerance stated above.

    Queues that others may have filled before the flow began can stand all the while: their length is allowed besides.
    """
    for flow in evidence.spec.flows:
        if flow.name not in evidence.flows:
            continue
        there = route(evidence.spec, flow.sender, flow.receiver)
        back = route(evidence.spec, flow.receiver, flow.sender)
        declared = base_rtt_us(evidence.spec, flow)
        shortest = sum(_shortest_delay_ns(port, evidence.spec) for port in (*there, *back)) // 1000
        longer = sum(_longest_delay_us(port, evidence.spec) for port in (*there, *back)) - declared
        sending = sum(_serialization_us(port) for port in (*there, *back))
        standing = sum(_queue_us(port) for port in (*there, *back) if _used_before(evidence.spec, flow, port))
        varied = sum(port.egress.impairment.jitter_us for port in (*there, *back) if port.egress.impairment)
        cards = [port.egress.card for port in (*there, *back) if port.egress.card]
        processed = sum(port.egress.processing_ns for port in (*there, *back)) / 1000
        handled = processed + sum(card.moderation_us + card.packet_us for card in cards)
        spared = sum(port.egress.delay_us for port in (*there, *back) if _overtakes(port))
        longest = declared * (1 + RTT_TOLERANCE) + longer + varied + handled + sending + standing + RTT_ALLOWANCE_US
        found = evidence.flows[flow.name]["base_rtt_us"]
        if found is not None and found % TIMESTAMP_US == 0 and has_timestamps(evidence.spec, flow.sender):
            shortest -= TIMESTAMP_US
        if found is None:
            yield f"no round trip of {flow.name} was seen while its sockets were sampled: it never got through"
        elif not shortest - varied - spared <= found <= longest:
            yield f"base RTT of {flow.name} is {found} us, declared {declared} us (at most {longest:.0f} us)"


def algorithm_holds(evidence: Evidence) -> Iterator[str]:
    """Each flow's sockets used the declared congestion-control algorithm with the declared parameters."""
    for flow in evidence.spec.flows:
        if flow.name not in evidence.flows:
            continue
        found = evidence.flows[flow.name]
        if found["cca"] != flow.cca:
            yield f"algorithm of {flow.name} is {found['cca']}, declared {flow.cca}"
            continue
        for name, declared in sorted(evidence.spec.cca_parameters(flow).items()):
            value = found["cca_parameters"].get(name)
            if str(value) != declared:
                yield f"{name} of {flow.cca} is {value} on the sockets of {flow.name}, declared {declared}"


def windows_hold(evidence: Evidence) -> Iterator[str]:
    """Yield socket buffers that are not those of the declared window: a kernel cuts what is above its limits."""
    receiving = evidence.achieved.get("receive_buffers", {})
    for flow in evidence.spec.flows:
        if flow.name not in evidence.flows:
            continue
        found = evidence.flows[flow.name].get("send_buffer_bytes"), receiving.get(flow.name)
        declared = buffers_bytes(evidence.spec, flow)
        for what, has, asked in zip(("send", "receive"), found, declared, strict=True):
            if asked is not None and has != asked:
                achieved = "was not read back" if has is None else f"is {has} B"
                yield f"{what} buffer of {flow.name} {achieved}, declared {asked} B"


def drops_only_where_declared(evidence: Evidence) -> Iterator[str]:
    """Only a shaped interface's queue, an impairment and a busy host may drop; deliberate drops are as declared."""
    for port, found in evidence.present_ports():
        busy = port.egress.card and port.egress.card.packet_us
        if found["drops"] and port.egress.rate_bps is None and not port.egress.impairment and not busy:
            yield f"{port.name} dropped {found['drops']} packets, declared without a bottleneck: 0"
        deliberate, declared = found["deliberate_drops"], len(port.egress.drops)
        if deliberate != declared:
            yield f"deliberate drops at {port.name} are {deliberate}, declared {declared}"


def memory_suffices(evidence: Evidence) -> Iterator[str]:
    """TCP never came under memory pressure: it would throttle the flows unseen."""
    found = evidence.achieved["memory_pressure"]
    if found:
        yield f"TCP came under memory pressure {found} times, allowed 0"


def cpu_sufficed(evidence: Evidence) -> Iterator[str]:
    """On a backend in real time no task waited long for a CPU: it would have slowed flows or delayed packets unseen.

    What the laboratory's own programs wait for each other does not count: others make them wait no longer than they run
    themselves, on all CPUs together.
    """
    waited_us = evidence.achieved.get("cpu_pressure_us")
    others_us = evidence.achieved.get("others_cpu_us")
    if waited_us is not None and others_us is not None:
        waited_us = min(waited_us, others_us)
    if waited_us is not None and waited_us > STARVED_SHARE * evidence.spec.end_us:
        share = 100 * waited_us / evidence.spec.end_us
        yield f"tasks waited for a CPU {share:.0f} % of the time, allowed {100 * STARVED_SHARE:.0f} %"


def captures_are_complete(evidence: Evidence) -> Iterator[str]:
    """Each declared capture was taken, and lost no packet."""
    for file, (name, place) in evidence.spec.probes.captures.items():
        found = evidence.achieved["capture"].get(file)
        if found is None:
            yield f"{name} was not captured at its {place}, declared captured"
        elif found["dropped"]:
            yield f"the capture of {name} at its {place} lost {found['dropped']} packets, allowed 0"


def goodput_is_possible(evidence: Evidence) -> Iterator[str]:
    """No shaped interface carried more payload than its rate allows until its flows' last byte.

    That is at the latest when the run ends: a flow whose first packet is lost begins a second or more after its start.
    """
    reports = {report["flow"]: report for report in evidence.reports}
    for port in ports(evidence.spec):
        if port.egress.rate_bps is None:
            continue
        crossing = [
            flow
            for flow in evidence.spec.flows
            if flow.name in reports and port in route(evidence.spec, flow.sender, flow.receiver)
        ]
        if not crossing:
            continue
        told = [reports[flow.name] for flow in crossing]
        until_us = max(evidence.end_us or 0, *(_received_until_us(report) for report in told))
        since_us = min(report["start_us"] for report in told)
        span_us = max(until_us - since_us, 1)
        found = sum(report["bytes_received"] for report in told) * 8e6 / span_us
        limit = _payload_bits(port, since_us, ceil(until_us)) * 1e6 / span_us
        if found > limit * (1 + GOODPUT_TOLERANCE):
            yield f"goodput over {port.name} is {found:.0f} bit/s, its rate allows {limit:.0f} bit/s"


def _received_until_us(report: Mapping[str, Any]) -> float:
    """When the last byte arrived: what the socket buffers held at the end of sending comes after it."""
    last_byte_us = report["start_us"] + report["bytes_received"] * 8e6 / max(report["goodput_bps"], 1)
    return max(float(report["end_us"]), float(last_byte_us))


Gate = Callable[[Evidence], Iterator[str]]
GATES: tuple[Gate, ...] = (
    everything_was_read_back,
    sysctls_hold,
    offloads_hold,
    mtu_holds,
    rate_and_delay_hold,
    busy_wires_carry_their_rate,
    changing_wires_follow_their_steps,
    queue_holds,
    policers_hold,
    impairment_holds,
    cards_hold,
    base_rtt_holds,
    algorithm_holds,
    windows_hold,
    drops_only_where_declared,
    memory_suffices,
    cpu_sufficed,
    captures_are_complete,
    goodput_is_possible,
)


def reasons_of(gates: Iterable[Gate], evidence: Evidence) -> tuple[str, ...]:
    """The reasons of the gates; empty for a valid run. What cannot be read is a reason too."""
    reasons: list[str] = []
    for gate in gates:
        try:
            reasons.extend(gate(evidence))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            reasons.append(f"gate {gate.__name__} cannot read what was achieved: {error!r}")
    return tuple(reasons)


def _serialization_us(port: Port) -> float:
    return port.frame_bytes * 8e6 / port.egress.rate_bps if port.egress.rate_bps else 0.0


def _overtakes(port: Port) -> bool:
    return bool(port.egress.impairment and port.egress.impairment.overtaking_ppm)


def _shortest_delay_ns(port: Port, spec: RunSpec) -> int:
    return min((step.delay_ns for step in steps(port.egress, spec.end_us)), default=port.egress.wire_delay_ns)


def _longest_delay_us(port: Port, spec: RunSpec) -> float:
    """The longest delay of a port; bits may leave slower than at the rate that it began with, or wait for that."""
    ways = steps(port.egress, spec.end_us)
    slowest = min((step.rate_bps for step in ways if step.rate_bps), default=0)
    held_us = max((then.at_us - step.at_us for step, then in pairwise(ways) if step.held), default=0)
    slower = port.frame_bytes * 8e6 / slowest if slowest else 0.0
    return max((step.delay_ns for step in ways), default=port.egress.wire_delay_ns) / 1000 + held_us + slower


def _queue_us(port: Port) -> float:
    """How long a packet waits at most in the full queue of a shaped interface."""
    queue, card = port.egress.queue, port.egress.card
    if card:
        return card.input_packets * card.packet_us
    if queue.limit_packets is not None:
        return queue.limit_packets * _serialization_us(port)
    held = queue.limit_bytes or int(queue.parameters.get("memory_limit", 0))
    return held * 8e6 / port.egress.rate_bps if port.egress.rate_bps else 0.0


def _used_before(spec: RunSpec, flow: Flow, port: Port) -> bool:
    """Whether traffic that began before the flow sends data or acknowledgments through the interface."""
    earlier = (one for one in spec.sent if one.start_us < flow.start_us)
    return any(
        port in (*route(spec, one.sender, one.receiver), *route(spec, one.receiver, one.sender)) for one in earlier
    )


def _payload_bits(port: Port, since_us: int, until_us: int) -> float:
    """Return the most payload that a shaped interface can carry in a time: full segments without TCP options."""
    ways = steps(port.egress, until_us) or (Step(0, port.egress.rate_bps or 0, 0),)
    if not all(way.rate_bps for way in ways):
        return inf  # from some time on packets leave in no time
    return capacity_bits(ways, until_us, since_us) * (port.mtu_bytes - IP_AND_TCP_HEADER_BYTES) / port.frame_bytes
