# SPDX-License-Identifier: Apache-2.0
"""Egress of an interface as ``tc`` commands, and ``tc``'s answer as the achieved egress. Pure.

In the guest the wire keeps rate and delay (guest/wire.py), behind a qdisc as the packet queue. On other kernels a
shaped interface is a token bucket of one frame (tbf), so that packets leave one by one at the link's rate, with the
packet queue inside, and a delay element is netem with room for all packets in flight. There the two never share an
interface: netem's limit also counts delayed packets, and would hide a queue limit. A delay element with random delay or
loss is netem everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from longfat.guest.options import NETEM_CHAIN
from longfat.guest.wire import UsedWire
from longfat.spec.network import frame_bytes
from longfat.spec.runspec import Card, DeliberateDrop, Egress, Link

BURST_SLACK_BYTES = 64  # tc rounds the bucket to ticks of 64 ns: it must still hold a frame
DELAY_LIMIT_PACKETS = 1_000_000  # more than any path here holds: a delay element never drops
QUEUE_HANDLE = 0x10 << 16  # the queue inside a shaped interface, "10:" of the commands below
RED_OPTIONS = ("min", "max", "ecn", "harddrop", "adaptive", "nodrop", "probability", "ewma")  # names in tc -d
IMPAIRMENT = ("loss", "jitter", "seed", "reorder", "rate", *NETEM_CHAIN)
CARD = ("slot", "packet")
SHORTEST_LOOK_US, LONGEST_LOOK_US = 50, 1000  # interval of the looks at a deliberate drop


def queue_commands(interface: str, egress: Egress) -> list[str]:
    """Return the lines for ``tc -batch`` that add the queue in front of the wire of ``interface``.

    Its lengths in bytes count whole frames, like the wire.
    """
    if egress.rate_bps is None:
        return []
    framing = f"stab overhead {egress.framing_bytes} linklayer ethernet"
    return [f"qdisc add dev {interface} root handle 10: {framing} {_queue(egress)}"]


def egress_commands(interface: str, egress: Egress, mtu_bytes: int, late_us: int = 0) -> list[str]:
    """Return the lines for ``tc -batch`` that add the egress without a wire.

    A shaper whose timer is late by up to ``late_us`` catches up, and so loses no rate.
    """
    if egress.rate_bps is not None:
        frame = frame_bytes(mtu_bytes, egress) + BURST_SLACK_BYTES
        burst = max(frame, egress.rate_bps * late_us // 8_000_000)
        return [
            f"qdisc add dev {interface} root handle 1: stab overhead {egress.framing_bytes} linklayer ethernet"
            f" tbf rate {egress.rate_bps}bit burst {burst} limit {burst}",
            f"qdisc add dev {interface} parent 1:1 handle 10: {_queue(egress)}",
        ]
    if egress.delay_us:
        return [
            f"qdisc add dev {interface} root handle 1: netem delay {egress.delay_us}us limit {DELAY_LIMIT_PACKETS}",
        ]
    return []


def impairment_command(interface: str, egress: Egress, seed: int) -> str:
    """Return the line, in the names of ``longfat.guest.options``, for a delay element with impairment."""
    given = egress.impairment.settings() if egress.impairment else {}
    settings = {**given, "latency": 1000 * egress.delay_us, "limit": DELAY_LIMIT_PACKETS, "seed": seed}
    return f"qdisc add dev {interface} root handle 1: netem " + " ".join(
        f"{k} {v}" for k, v in sorted(settings.items())
    )


def card_commands(interface: str, card: Card) -> list[str]:
    """Return the lines, in the names of ``longfat.guest.options``, for a card: a netem inside another.

    An interrupt moves packets from the outer to the inner netem.
    """
    places = ("root handle 1:", "parent 1:1 handle 2:")
    return [
        f"qdisc add dev {interface} {place} netem " + " ".join(f"{k} {v}" for k, v in sorted(settings.items()))
        for place, settings in zip(places, card.settings(), strict=False)
    ]


def hook_command(interface: str) -> str:
    """Return the line for ``tc -batch`` that adds the hook of deliberate drops, before the run and until its end.

    Adding or removing clsact deactivates the device for a moment, which empties its qdiscs without counting drops
    (qdisc_graft in net/sched/sch_api.c).
    """
    return f"qdisc add dev {interface} clsact"


def _queue(egress: Egress) -> str:
    queue = egress.queue
    words = [queue.kind]
    if queue.limit_packets is not None:
        words += ["limit", str(queue.limit_packets)]
    if queue.limit_bytes is not None:
        words += ["limit", str(queue.limit_bytes)]
    for key, value in sorted(queue.parameters.items()):
        words += [key] if value is True else [key, str(value)]
    return " ".join(words)


def looks_us(links: Iterable[Link]) -> int:
    """Return the interval of the looks at a deliberate drop, before its filter would drop a second packet."""
    ends = [(end.egress, link.mtu_bytes) for link in links for end in (link.a, link.b)]
    fastest_pps = max((egress.rate_bps or 0) / 8 / mtu for egress, mtu in ends)
    packets = min((drop.packet for egress, _ in ends for drop in egress.drops), default=DeliberateDrop.packet)
    return LONGEST_LOOK_US if fastest_pps * LONGEST_LOOK_US < 1e6 * packets else SHORTEST_LOOK_US


@dataclass(frozen=True)
class Hook:
    """Place of a deliberate drop: an interface, at ``egress`` or ``ingress``.

    Never at the sender's own egress, where TCP would see a full queue instead of a loss.
    """

    node: str
    interface: str
    direction: str

    def drop_filter(self, packet: int) -> str:
        """Return the line for ``tc -batch`` that drops every ``packet``-th packet from now on."""
        action = f"action pass random determ drop {packet}"
        return f"filter add dev {self.interface} {self.direction} pref 1 protocol ip matchall {action}"

    def removal(self) -> str:
        """Return the line for ``tc -batch`` that removes the filter, before it drops a second packet."""
        return f"filter del dev {self.interface} {self.direction} pref 1"


def achieved_egress(qdiscs: list[dict[str, Any]], interface: str, used: UsedWire | None = None) -> dict[str, Any]:
    """Return rate, queue, delay and drops of an interface from ``tc -s -d -j qdisc show`` and its wire ``used``.

    ``qdiscs`` is the parsed JSON of all interfaces of the node. Missing parts are None, for the gates. Queues other
    than pfifo and bfifo have ``queue_parameters``.
    """
    own = [qdisc for qdisc in qdiscs if qdisc.get("dev") == interface]
    found: dict[str, Any] = {
        "rate_bps": (used and used.wire.rate_bps) or None,
        "queue_kind": None,
        "limit_packets": None,
        "limit_bytes": None,
        "delay_us": used.wire.delay_ns // 1000 if used else 0,
        "drops": 0,
    }
    if used:
        found |= {"delay_ns": used.wire.delay_ns, "processing_ns": used.wire.jitter_ns}
    if used and used.wire.rate_bps:
        found |= {"sent_bytes": used.sent_bytes, "busy_ns": used.busy_ns}
    if used and used.wire.pause:
        found |= {"pause": {**asdict(used.wire.pause), "pauses": used.pauses}}
    for qdisc in own:
        options = qdisc.get("options", {})
        if qdisc["kind"] == "tbf":
            found["rate_bps"] = options["rate"] * 8
            found["drops"] += qdisc.get("drops", 0)
        elif qdisc["kind"] == "netem" and options.keys() & CARD:
            found["card"] = [*found.get("card", []), {key: options[key] for key in ("limit", *CARD) if key in options}]
            found["drops"] += qdisc.get("drops", 0) if qdisc.get("root") else 0  # the outer one includes the inner one
        elif qdisc["kind"] == "netem":
            found["delay_us"] = round(options["delay"]["delay"] * 1e6)
            found["drops"] += qdisc.get("drops", 0)
            drawn = {key: value for key, value in options.items() if key in IMPAIRMENT}
            found |= {"impairment": drawn, "passed_packets": qdisc["packets"]} if drawn else {}
        elif qdisc.get("handle") == "10:":
            found["queue_kind"] = qdisc["kind"]
            found["drops"] += qdisc.get("drops", 0) if qdisc.get("root") else 0  # tbf includes its queue
            limit = "limit_bytes" if qdisc["kind"] in ("bfifo", "red") else "limit_packets"
            found[limit] = options.get("limit")
            if qdisc["kind"] not in ("pfifo", "bfifo"):
                further = RED_OPTIONS if qdisc["kind"] == "red" else sorted(options.keys() - {"limit"})
                found["queue_parameters"] = {key: options[key] for key in further if key in options}
    return found
