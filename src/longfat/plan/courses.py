# SPDX-License-Identifier: Apache-2.0
"""Changes of a network during a run, in the affected interfaces.

Must not know any topology: it compares links with links.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, Literal, TypeVar

from longfat.spec.runspec import Change as Step
from longfat.spec.runspec import Interface, Link, Trace
from longfat.spec.units import Duration
from longfat.study.changing import Change, Changing, changed

End = tuple[int, Literal["a", "b"]]
"""The number of a link, and one of its ends."""

Topology = TypeVar("Topology", bound=Changing)


def with_changes(
    topology: Topology,
    lay: Callable[[Topology], tuple[Link, ...]],
    forward: Collection[End],
    backward: Collection[End],
    end_us: int,
) -> tuple[Link, ...]:
    """Return the links of a topology with its traces, changes and outages.

    ``lay`` returns the links of a topology without them. All packets leave the ends ``forward`` towards the receivers,
    and the ends ``backward`` towards the senders. Series repeat until ``end_us``.
    """
    changes: dict[End, dict[int, Step]] = {}

    def note(end: End, at_us: int, **what: Any) -> None:
        own = changes.setdefault(end, {})
        own[at_us] = replace(own.get(at_us, Step(at_us)), **what)

    now, laid = topology, lay(topology)
    for change in (*topology.changes, *_round_trips(topology, end_us)):
        before, now = laid, changed(now, change)
        laid = lay(now)
        for end, key, value in _differences(before, laid):
            note(end, change.at.value, **{key: value})
        if change.outage:
            for end in (*forward, *backward):
                note(end, change.at.value, held=True)
                note(end, change.at.value + change.outage.value, held=False)
    traces: dict[End, Trace | None] = {}
    for ends, trace in ((forward, topology.trace), (backward, topology.reverse_trace)):
        traces |= dict.fromkeys(ends, trace.trace if trace else None)
        for row in trace.series.until(end_us) if trace and trace.series else ():
            for end in ends:
                note(end, row.at_us, held=not row.rate_bps, **({"rate_bps": row.rate_bps} if row.rate_bps else {}))

    def with_own(interface: Interface, end: End) -> Interface:
        own = tuple(change for _, change in sorted(changes.get(end, {}).items()))
        return replace(interface, egress=replace(interface.egress, changes=own, trace=traces.get(end)))

    return tuple(
        replace(link, a=with_own(link.a, (number, "a")), b=with_own(link.b, (number, "b")))
        for number, link in enumerate(lay(topology))
    )


def _round_trips(topology: Changing, end_us: int) -> Iterator[Change]:
    """Yield the changes of the round-trip time by a series; a rate is a change of one direction."""
    series = topology.trace and topology.trace.series
    for row in series.until(end_us) if series and series.has_rtt else ():
        yield Change.model_construct(at=Duration(row.at_us), rtt=Duration(row.rtt_us or 0))


def _differences(before: tuple[Link, ...], after: tuple[Link, ...]) -> Iterator[tuple[End, str, int | None]]:
    """Yield each end whose rate or delay differs, with the name of the setting and its new value."""
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        sides: tuple[tuple[Literal["a", "b"], Interface, Interface], ...] = ("a", old.a, new.a), ("b", old.b, new.b)
        for side, was, becomes in sides:
            for key in ("rate_bps", "delay_us"):
                if getattr(was.egress, key) != getattr(becomes.egress, key):
                    yield (number, side), key, getattr(becomes.egress, key)
