# SPDX-License-Identifier: Apache-2.0
"""Claims of format 1, whose tests become relations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath

from longfat.convert.document import document_text
from longfat.convert.former import (
    LIMITS,
    AllTest,
    Claim,
    ClaimsDocument,
    DifferenceTest,
    EqualTest,
    FormulaTest,
    GainTest,
    Limits,
    NotTestable,
    OrderTest,
    Quantity,
    RankTest,
    RatioTest,
    SimpleTest,
    Test,
    ValueTest,
)
from longfat.convert.loops import Draft, joined
from longfat.convert.terms import Terms, bare
from longfat.manifest.document import document_of
from longfat.manifest.emit import Lines
from longfat.manifest.names import Finding, Path
from longfat.manifest.source import read_source
from longfat.manifest.study import Study
from longfat.metrics.registry import load_own_metrics
from longfat.relations.bind import check_relation
from longfat.relations.syntax import RelationError, parse
from longfat.runspec import Scalar


def converted_claims(path: FilePath, study: Study) -> str:
    """The text of a ``claims.yaml`` of format 1 in format 2, for the ``study`` in format 2.

    Raises StudyError with all that is wrong with it, of which each problem names the claim.
    """
    load_own_metrics(path.parent)
    terms = Terms(study)
    written: list[tuple[str, ...]] = []

    def check(document: ClaimsDocument) -> Iterator[Finding]:
        if document.study != study.name:
            yield Finding(("study",), f"{document.study!r} is not the study in this folder, {study.name!r}")
        for index, claim in enumerate(document.claims):
            found = list(_findings(claim.test, ("claims", index, "test"), terms))
            written.append(() if found else tuple(_relations(claim.test, terms)))
            found += _faults(written[-1], ("claims", index, "test"), study)
            for finding in found:
                yield Finding(finding.path, f"claim {claim.id!r}: {finding.message}", finding.hint)

    source = read_source(path)
    claims = document_of(source, ClaimsDocument, "claims", "id", check).claims
    given = source.data["claims"]
    entries = [_entry(*one) for one in zip(claims, given, written, strict=True)]
    return document_text(path, "claims", entries)


def _entry(claim: Claim, given: dict[str, object], relations: tuple[str, ...]) -> dict[str, object]:
    """A claim as data of format 2."""
    entry = {key: value for key, value in given.items() if key not in ("kind", "test")}
    if isinstance(claim.test, NotTestable):
        return {**entry, "not_testable": claim.test.reason}
    return {**entry, "relation": relations[0] if len(relations) == 1 else Lines(relations)}


def _findings(test: Test, place: Path, terms: Terms) -> Iterator[Finding]:
    """The names in a test that the converted study lacks."""
    if isinstance(test, AllTest):
        for index, part in enumerate(test.tests):
            below = (*place, "tests", index)
            yield from _findings(part, below, terms)
            if isinstance(part, NotTestable):
                yield Finding(below, "a part of a test cannot be not_testable; say it of the whole claim")
    for key, value in test:
        if isinstance(value, Quantity):
            yield from terms.findings(value, (*place, key))
    if isinstance(test, OrderTest | EqualTest | RankTest):
        for key in ("by", "across", "for_each"):
            if factor := getattr(test, key, None):
                yield from terms.gone(factor, test.of.experiment, (*place, key))


def _faults(relations: tuple[str, ...], place: Path, study: Study) -> Iterator[Finding]:
    """The faults of the relations."""
    for text in relations:
        try:
            check_relation(parse(text), study)
        except RelationError as error:
            yield Finding(place, f"column {error.column} of {text!r}: {error.message}", error.hint)


def _relations(test: Test, terms: Terms) -> Iterator[str]:
    """The relations that hold together where the test does."""
    drafts = [_draft(part, terms) for part in _parts(test)]
    return (draft.text() for draft in joined(drafts, terms.experiments))


def _parts(test: Test) -> Iterator[SimpleTest]:
    if isinstance(test, AllTest):
        for part in test.tests:
            yield from _parts(part)
    elif not isinstance(test, NotTestable):
        yield test


def _draft(test: SimpleTest, terms: Terms) -> Draft:
    """The relation of a single test."""
    match test:
        case ValueTest():
            return Draft(("", _limit(test)), (terms.of(test.of),))
        case RatioTest():
            return Draft(("", " / ", _limit(test)), (terms.of(test.of), terms.of(test.to)))
        case GainTest():
            return Draft(("gain(", ", ", ")" + _limit(test)), (terms.of(test.of), terms.of(test.over)))
        case DifferenceTest():
            return Draft(("", " - ", _limit(test)), (terms.of(test.of), terms.of(test.minus)))
        case FormulaTest():
            return Draft((formula_text(test.formula, test.arguments, terms) + _limit(test),))
        case EqualTest():
            nearly = ", nearly" if test.approximate else ""
            return Draft(("alike(", f" over {test.across}{nearly})"), (terms.of(test.of),), _each(test.for_each))
        case RankTest():
            return _rank(test, terms)
        case OrderTest():
            return _order(test, terms)


def _rank(test: RankTest, terms: Terms) -> Draft:
    head, tail = f"rank({terms.value(test.value)} of {test.by} by ", f"){_limit(test)}"
    if test.of == test.then:
        return Draft((head, tail), (terms.of(test.of),))
    return Draft((head, " then ", tail), (terms.of(test.of), terms.of(test.then)))


def _order(test: OrderTest, terms: Terms) -> Draft:
    sides = [test.of] if test.minus is None else [test.of, test.minus]
    between = [" > "] if test.minus is None else [" - ", " > "]
    listed = [terms.of(quantity, {test.by: value}) for value in test.descending for quantity in sides]
    texts = (between * len(test.descending))[:-1]
    return Draft(("", *texts, ""), tuple(listed), _each(test.for_each))


def _each(factor: str | None) -> tuple[str, ...]:
    return (f"for {factor}",) if factor else ()


def _limit(limits: Limits) -> str:
    """The right side of the comparison."""
    if limits.equals is not None:
        sign = "~" if limits.approximate and limits.plus_minus is None else "="
        spread = "" if limits.plus_minus is None else f" \N{PLUS-MINUS SIGN} {bare(limits.plus_minus)}"
        return f" {sign} {bare(limits.equals)}{spread}"
    if limits.between:
        low, high = limits.between
        return f" in [{bare(low)}, {bare(high)}]"
    name = next(name for name in LIMITS if getattr(limits, name) is not None)
    return f" {LIMITS[name]} {bare(getattr(limits, name))}"


def formula_text(name: str, arguments: dict[str, Scalar], terms: Terms) -> str:
    """A formula with its arguments."""
    return f"{name}({', '.join(f'{key}={terms.value(value)}' for key, value in arguments.items())})"
