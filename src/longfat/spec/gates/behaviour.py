# SPDX-License-Identifier: Apache-2.0
"""Gates of behaviour: wires, queues, hosts and flows stayed within their settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import ceil, inf
from typing import Any

from longfat.spec.gates.evidence import Evidence
from longfat.spec.network import (
    IP_AND_TCP_HEADER_BYTES,
    Port,
    Step,
    base_rtt_us,
    capacity_bits,
    has_timestamps,
    impairment_seed,
    ports,
    route,
    steps,
)
from longfat.spec.runspec import Flow, RunSpec

# A base RTT may exceed the declared delays by the time that full packets and their acknowledgements need
# on the shaped links, by 5 % and by 1 ms: the smallest RTT a socket sees may include packets already queued
# when it starts, and real-time backends wake up late. An RTT below the declared delay is always wrong.
RTT_TOLERANCE = 0.05
RTT_ALLOWANCE_US = 1000

# After a loss the sample of an RTT comes from timestamps, whose clock has whole milliseconds (RFC 7323,
# tcp_rtt_tsopt_us in net/ipv4/tcp_input.c).
TIMESTAMP_US = 1000

# BBR paces its packets. A packet's timestamp is its planned departure (tcp_wstamp_ns), but a timeout retransmits at
# once (tcp_retransmit_timer in net/ipv4/tcp_timer.c does not ask tcp_pacing_check). The sample, and with it BBR's own
# minimum, is then shorter than the path by up to the distance of two packets.
PACED = "bbr"

# iperf2's receiver starts its clock at the first read, when up to a queue of packets may be behind it.
GOODPUT_TOLERANCE = 0.01

# Share of the time in which a runnable task waited for a CPU. On two idle cores a run's own
# programs wait for each other about 10 % of it at 100 Mbit/s; with four busy loops next to them it is 84 %.
STARVED_SHARE = 0.25

CARRIED_SLACK = 0.005
SHORTEST_FRAME_BYTES = 54  # headers of Ethernet, IPv4 and TCP


def busy_wires_carry_their_rate(evidence: Evidence) -> Iterator[str]:
    """Require a busy wire to carry its rate, to half a percent and a frame.

    Only wires of the guest count their busy time. A frame that finds a wire idle takes whole nanoseconds, the fraction
    is dropped: the busy time may be too short by a nanosecond for each frame.
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
    """Require each step of a changing wire within its microsecond, and the capacity of its steps.

    The bits that left a busy wire must be those that its steps offered, to half a percent and a frame, and no more than
    the capacity of all steps.
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


LOSS_DEVIATIONS = 6


def impairment_holds(evidence: Evidence) -> Iterator[str]:
    """Require the declared loss, jitter and seed of each delay element, and a plausible number of lost packets.

    Independent losses are binomial, and six standard deviations are exceeded in one run of 500 million. The number of
    losses in bursts depends on few draws and is not judged.
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


def base_rtt_holds(evidence: Evidence) -> Iterator[str]:
    """Require the smallest RTT of each flow to lie between the declared delay and the tolerance stated above.

    Queues that other flows filled before the flow began may never drain, so their length is allowed in addition.
    """
    for flow, read in evidence.present_flows():
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
        found = read["base_rtt_us"]
        if found is not None and found % TIMESTAMP_US == 0 and has_timestamps(evidence.spec, flow.sender):
            shortest = 0 if flow.cca.startswith(PACED) else shortest - TIMESTAMP_US
        if found is None:
            yield f"no round trip of {flow.name} was seen while its sockets were sampled: it never got through"
        elif not shortest - varied - spared <= found <= longest:
            yield f"base RTT of {flow.name} is {found} us, declared {declared} us (at most {longest:.0f} us)"


def drops_only_where_declared(evidence: Evidence) -> Iterator[str]:
    """Require drops only at shaped interfaces, impairments and busy hosts, and deliberate drops as declared."""
    for port, found in evidence.present_ports():
        busy = port.egress.card and port.egress.card.packet_us
        if found["drops"] and port.egress.rate_bps is None and not port.egress.impairment and not busy:
            yield f"{port.name} dropped {found['drops']} packets, declared without a bottleneck: 0"
        deliberate, declared = found["deliberate_drops"], len(port.egress.drops)
        if deliberate != declared:
            yield f"deliberate drops at {port.name} are {deliberate}, declared {declared}"


def memory_suffices(evidence: Evidence) -> Iterator[str]:
    """Require that TCP was never under memory pressure, which throttles flows."""
    found = evidence.achieved["memory_pressure"]
    if found:
        yield f"TCP came under memory pressure {found} times, allowed 0"


def cpu_sufficed(evidence: Evidence) -> Iterator[str]:
    """Require that, in real time, no task waited long for a CPU, which would slow flows and delay packets.

    Waits of the guest's own programs for each other do not count: other programs cause at most as much waiting as their
    own CPU time.
    """
    waited_us = evidence.achieved.get("cpu_pressure_us")
    others_us = evidence.achieved.get("others_cpu_us")
    if waited_us is not None and others_us is not None:
        waited_us = min(waited_us, others_us)
    if waited_us is not None and waited_us > STARVED_SHARE * evidence.spec.end_us:
        share = 100 * waited_us / evidence.spec.end_us
        yield f"tasks waited for a CPU {share:.0f} % of the time, allowed {100 * STARVED_SHARE:.0f} %"


def goodput_is_possible(evidence: Evidence) -> Iterator[str]:
    """Require that no shaped interface carried more payload than its rate allows until its flows' last byte.

    The time ends with the run at the latest: a flow whose first packet is lost begins a second or more after its start.
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
        own = [reports[flow.name] for flow in crossing]
        until_us = max(evidence.end_us or 0, *(_received_until_us(report) for report in own))
        since_us = min(report["start_us"] for report in own)
        span_us = max(until_us - since_us, 1)
        found = sum(report["bytes_received"] for report in own) * 8e6 / span_us
        limit = _payload_bits(port, since_us, ceil(until_us)) * 1e6 / span_us
        if found > limit * (1 + GOODPUT_TOLERANCE):
            yield f"goodput over {port.name} is {found:.0f} bit/s, its rate allows {limit:.0f} bit/s"


def _received_until_us(report: Mapping[str, Any]) -> float:
    """Return the arrival time of the last byte, which may follow the end of sending."""
    last_byte_us = report["start_us"] + report["bytes_received"] * 8e6 / max(report["goodput_bps"], 1)
    return max(float(report["end_us"]), float(last_byte_us))


def _serialization_us(port: Port) -> float:
    return port.frame_bytes * 8e6 / port.egress.rate_bps if port.egress.rate_bps else 0.0


def _overtakes(port: Port) -> bool:
    return bool(port.egress.impairment and port.egress.impairment.overtaking_ppm)


def _shortest_delay_ns(port: Port, spec: RunSpec) -> int:
    return min((step.delay_ns for step in steps(port.egress, spec.end_us)), default=port.egress.wire_delay_ns)


def _longest_delay_us(port: Port, spec: RunSpec) -> float:
    """Return the longest delay of a port, with slower rates and pauses of its steps."""
    ways = steps(port.egress, spec.end_us)
    slowest = min((step.rate_bps for step in ways if step.rate_bps), default=0)
    held_us = max((then.at_us - step.at_us for step, then in pairwise(ways) if step.held), default=0)
    slower = port.frame_bytes * 8e6 / slowest if slowest else 0.0
    return max((step.delay_ns for step in ways), default=port.egress.wire_delay_ns) / 1000 + held_us + slower


def _queue_us(port: Port) -> float:
    """Return the longest wait of a packet in the full queue of a shaped interface."""
    queue, card = port.egress.queue, port.egress.card
    if card:
        return card.input_packets * card.packet_us
    if queue.limit_packets is not None:
        return queue.limit_packets * _serialization_us(port)
    held = queue.limit_bytes or int(queue.parameters.get("memory_limit", 0))
    return held * 8e6 / port.egress.rate_bps if port.egress.rate_bps else 0.0


def _used_before(spec: RunSpec, flow: Flow, port: Port) -> bool:
    """Return whether traffic that began before the flow sends data or acknowledgments through the interface."""
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
