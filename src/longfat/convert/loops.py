# SPDX-License-Identifier: Apache-2.0
"""Joins relations that differ in a single value into one relation with a loop; shared parts are written once.

Must not know tests: its input is terms and the texts between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from longfat.convert.terms import VARIABLE, Item, Term


@dataclass(frozen=True)
class Draft:
    """A relation: terms, the texts before, between and after them, and loops at its end."""

    texts: tuple[str, ...]
    terms: tuple[Term, ...] = ()
    loops: tuple[str, ...] = ()

    def text(self) -> str:
        """The relation; parts that several terms share come after ``in`` and ``where``."""
        first = self.terms[0].items if len(self.terms) > 1 else ()
        shared = [item for item in first if all(item in term.items for term in self.terms)]
        claim = self.texts[0]
        for term, text in zip(self.terms, self.texts[1:], strict=True):
            claim += term.text(shared) + text
        if shared and shared[0] == first[0]:
            claim += f" in {shared.pop(0).text}"
        where = f" where {', '.join(item.text for item in shared)}" if shared else ""
        return " ".join([claim, *self.loops]) + where


def joined(drafts: Sequence[Draft], experiments: Iterable[str]) -> Iterator[Draft]:
    """The same relations, each series of which that differs in one factor's value only as a loop."""
    known = set(experiments)
    start = 0
    while start < len(drafts):
        loops = [_series(drafts[start:], factor, value) for factor, value in _single(drafts[start])]
        factor, values = max(loops, key=lambda loop: len(loop[1]), default=("", []))
        if len(values) > 1:
            yield _loop(drafts[start], factor, values, known)
        else:
            yield drafts[start]
        start += max(len(values), 1)


def _single(draft: Draft) -> list[tuple[str, str]]:
    """Every single value that a factor has in a draft."""
    pairs = [(item.factor, item.value) for term in draft.terms for item in term.items]
    return list(dict.fromkeys((factor, value) for factor, value in pairs if factor and value))


def _series(drafts: Sequence[Draft], factor: str, value: str) -> tuple[str, list[str]]:
    """The values of a factor along which the first drafts are one relation."""
    shape, values = _open(drafts[0], factor, value, factor), [value]
    for draft in drafts[1:]:
        same = [
            other
            for name, other in _single(draft)
            if name == factor and other not in values and _open(draft, factor, other, factor) == shape
        ]
        if not same:
            break
        values += same
    return factor, values


def _open(draft: Draft, factor: str, value: str, text: str) -> Draft:
    """The draft with a ``text`` in place of the factor's value, next to the experiment."""

    def opened(term: Term) -> Term:
        others = tuple(item for item in term.items if (item.factor, item.value) != (factor, value))
        return replace(term, items=(others[0], Item(text), *others[1:])) if len(others) < len(term.items) else term

    return replace(draft, terms=tuple(map(opened, draft.terms)))


def _loop(draft: Draft, factor: str, values: Sequence[str], experiments: set[str]) -> Draft:
    """The drafts that begin with this one as a loop. A variable may not be taken for an experiment."""
    variable = VARIABLE if factor in experiments else factor
    text = f"{factor}={variable}" if experiments & {factor, *values} else factor
    opened = _open(draft, factor, values[0], text)
    return replace(opened, loops=(f"for {variable} in [{', '.join(values)}]", *draft.loops))
