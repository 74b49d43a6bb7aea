# SPDX-License-Identifier: Apache-2.0
"""Changes of a network during a run, written to the interfaces that change.

Must not know any topology: it compares links with links.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from longfat.spec.runspec import Change, Interface, Link, Trace

End = tuple[int, Literal["a", "b"]]
"""The number of a link, and one of its ends."""


class Course:
    """Links, and the changes of each of their ends."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = tuple(links)
        self._traces: dict[End, Trace | None] = {}
        self._changes: dict[End, dict[int, Change]] = {}

    def follow(self, ends: Iterable[End], trace: Trace | None) -> None:
        """Let the rate of ends follow a trace."""
        self._traces |= dict.fromkeys(ends, trace)

    def differ(self, at_us: int, before: Sequence[Link], after: Sequence[Link]) -> None:
        """From a given time on, change every end from its rate and delay in ``before`` to those in ``after``."""
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            for side, was, becomes in (("a", old.a.egress, new.a.egress), ("b", old.b.egress, new.b.egress)):
                if was.rate_bps != becomes.rate_bps:
                    self._note((number, side), at_us, rate_bps=becomes.rate_bps)
                if was.delay_us != becomes.delay_us:
                    self._note((number, side), at_us, delay_us=becomes.delay_us)

    def hold(self, ends: Iterable[End], at_us: int, duration_us: int) -> None:
        """Let no packet leave the ends for a time."""
        for end in ends:
            self._note(end, at_us, held=True)
            self._note(end, at_us + duration_us, held=False)

    def links(self) -> tuple[Link, ...]:
        """Return the links with all changes."""
        return tuple(
            replace(link, a=self._changed(link.a, (number, "a")), b=self._changed(link.b, (number, "b")))
            for number, link in enumerate(self._links)
        )

    def _note(self, end: Any, at_us: int, **what: Any) -> None:
        """Merge changes at one time; the last value of a setting counts."""
        changes = self._changes.setdefault(end, {})
        changes[at_us] = replace(changes.get(at_us, Change(at_us)), **what)

    def _changed(self, interface: Interface, end: End) -> Interface:
        changes = tuple(change for _, change in sorted(self._changes.get(end, {}).items()))
        trace = self._traces.get(end)
        if not changes and trace is None:
            return interface
        return replace(interface, egress=replace(interface.egress, changes=changes, trace=trace))
