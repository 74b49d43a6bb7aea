# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the fake backend: the result of each flow of a RunSpec, in closed form.

Pure functions of the RunSpec. The model is simple enough to work out any number of a report by hand:

- A flow takes the route with the fewest links; its base RTT is the sum of the egress delays there and back.
- A shaped egress carries ``rate * mss / (mtu + 14 + framing)`` bit/s of payload; mss is the MTU less 40 bytes, 52 with
  timestamps. All TCP connections that ever use the egress have equal parts. A rate that changes counts with its mean.
- The window of a connection is twice ``window_bytes``: Linux doubles the size that iperf2 requests (socket(7)).
- goodput = min(share of the rate on each egress, streams * window / base RTT, rate of the application), in whole bytes.
- Outstanding data of a connection doubles each RTT from ten segments until it reaches its pipe: the smaller of window
  and share * base RTT, in whole segments. Each deliberate drop halves it, then it grows by one. The goodput does not.
- Each web user gets one reply of 10 000 bytes in 200 ms for each whole second; flows do not feel it.
- Throughput of a connection is its share of the goodput, less as its outstanding data is less than its pipe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from longfat.spec.network import Port, base_rtt_us, capacity_bits, mss_bytes, route, steps
from longfat.spec.runspec import Flow, RunSpec, Web

INITIAL_SEGMENTS = 10  # RFC 6928
WEB_REPLY_BYTES = 10_000
WEB_REPLY_US = 200_000


def goodput_limit_bps(spec: RunSpec, flow: Flow) -> float | None:
    """The rate that the model allows the flow, all its streams together; None when nothing limits it."""
    limits = []
    for hop in route(spec, flow.sender, flow.receiver):
        if hop.egress.rate_bps is not None:
            payload_bps = _mean_bps(hop, flow) * mss_bytes(spec, flow) / hop.frame_bytes
            limits.append(payload_bps * flow.streams / _connections(spec, hop))
    rtt_us = base_rtt_us(spec, flow)
    if flow.window_bytes is not None and rtt_us > 0:
        limits.append(flow.streams * 2 * flow.window_bytes * 8e6 / rtt_us)
    if flow.mean_rate_bps is not None:
        limits.append(flow.mean_rate_bps)
    return min(limits, default=None)


def _mean_bps(hop: Port, flow: Flow) -> float:
    """Return the mean rate of a shaped egress while a flow lasts."""
    end_us = flow.start_us + flow.duration_us
    ways = steps(hop.egress, end_us)
    if not ways:
        return float(hop.egress.rate_bps or 0)
    return capacity_bits(ways, end_us, flow.start_us) * 1e6 / flow.duration_us


def received_bytes(spec: RunSpec, flow: Flow, until_us: int) -> int:
    """Bytes that the receiver has by ``until_us``, counted from the start of the measurement."""
    active_us = min(max(until_us - flow.start_us, 0), flow.duration_us)
    return int((goodput_limit_bps(spec, flow) or 0.0) * active_us / 8e6)


def goodput_bps(spec: RunSpec, flow: Flow) -> float:
    """The report of the flow's receiving end: bytes received, divided by the flow's duration."""
    return received_bytes(spec, flow, flow.start_us + flow.duration_us) * 8e6 / flow.duration_us


def pipe_segments(spec: RunSpec, flow: Flow) -> int:
    """Full segments that one connection of the flow keeps outstanding; at least one."""
    per_stream_bps = (goodput_limit_bps(spec, flow) or 0.0) / flow.streams
    return max(1, int(per_stream_bps * base_rtt_us(spec, flow) / 8e6) // mss_bytes(spec, flow))


def drop_times_us(spec: RunSpec, flow: Flow) -> tuple[int, ...]:
    """When the deliberate drops on the flow's route strike, ascending."""
    hops = route(spec, flow.sender, flow.receiver)
    return tuple(sorted(drop.at_us for hop in hops for drop in hop.egress.drops))


def outstanding_segments(spec: RunSpec, flow: Flow) -> Iterator[tuple[int, int]]:
    """Time in microseconds and segments outstanding of one connection, once each RTT (1 ms at the least)."""
    step_us = max(base_rtt_us(spec, flow), 1000)
    drops = deque(drop_times_us(spec, flow))
    pipe = pipe_segments(spec, flow)
    segments, growth = min(INITIAL_SEGMENTS, pipe), None
    for t_us in range(flow.start_us, flow.start_us + flow.duration_us, step_us):
        while drops and drops[0] < t_us:
            drops.popleft()
            segments, growth = max(1, segments // 2), 1
        yield t_us, segments
        segments = min(pipe, segments + (growth or segments))


def throughput_bytes_per_s(spec: RunSpec, flow: Flow) -> Iterator[tuple[int, int]]:
    """Time in microseconds and bytes per second sent by one connection, once each RTT (1 ms at the least)."""
    full = (goodput_limit_bps(spec, flow) or 0.0) / 8 / flow.streams
    pipe = pipe_segments(spec, flow)
    for t_us, segments in outstanding_segments(spec, flow):
        yield t_us, int(full * segments / pipe)


def web_replies(users: Web) -> int:
    """Replies that all users of a web traffic get."""
    return users.users * (users.duration_us // 1_000_000)


def _connections(spec: RunSpec, hop: Port) -> int:
    return sum(flow.streams for flow in spec.flows if hop in route(spec, flow.sender, flow.receiver))
