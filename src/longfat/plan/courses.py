# SPDX-License-Identifier: Apache-2.0
"""Changes of a network during a run, in the affected interfaces.

Must not know any topology: it compares links with links.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, Literal, TypeVar

from longfat.spec.runspec import Change, Interface, Link, Trace
from longfat.study.changing import Changing, changed

End = tuple[int, Literal["a", "b"]]
"""The number of a link, and one of its ends."""

Topology = TypeVar("Topology", bound=Changing)


def with_changes(
    topology: Topology, lay: Callable[[Topology], tuple[Link, ...]], forward: Collection[End], backward: Collection[End]
) -> tuple[Link, ...]:
    """Return the links of a topology with its traces, changes and outages.

    ``lay`` returns the links of a topology without them. All packets leave the ends ``forward`` towards the receivers,
    and the ends ``backward`` towards the senders.
    """
    changes: dict[End, dict[int, Change]] = {}

    def note(end: End, at_us: int, **what: Any) -> None:
        own = changes.setdefault(end, {})
        own[at_us] = replace(own.get(at_us, Change(at_us)), **what)

    now = topology
    for change in topology.changes:
        before, now = lay(now), changed(now, change)
        for end, key, value in _differences(before, lay(now)):
            note(end, change.at.value, **{key: value})
        if change.outage:
            for end in (*forward, *backward):
                note(end, change.at.value, held=True)
                note(end, change.at.value + change.outage.value, held=False)
    traces: dict[End, Trace | None] = {}
    for ends, trace in ((forward, topology.trace), (backward, topology.reverse_trace)):
        traces |= dict.fromkeys(ends, trace.trace if trace else None)

    def with_own(interface: Interface, end: End) -> Interface:
        own = tuple(change for _, change in sorted(changes.get(end, {}).items()))
        return replace(interface, egress=replace(interface.egress, changes=own, trace=traces.get(end)))

    return tuple(
        replace(link, a=with_own(link.a, (number, "a")), b=with_own(link.b, (number, "b")))
        for number, link in enumerate(lay(topology))
    )


def _differences(before: tuple[Link, ...], after: tuple[Link, ...]) -> Iterator[tuple[End, str, int | None]]:
    """Yield each end whose rate or delay differs, with the name of the setting and its new value."""
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        sides: tuple[tuple[Literal["a", "b"], Interface, Interface], ...] = ("a", old.a, new.a), ("b", old.b, new.b)
        for side, was, becomes in sides:
            for key in ("rate_bps", "delay_us"):
                if getattr(was.egress, key) != getattr(becomes.egress, key):
                    yield (number, side), key, getattr(becomes.egress, key)
