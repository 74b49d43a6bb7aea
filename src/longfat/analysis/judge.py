# SPDX-License-Identifier: Apache-2.0
"""Holds each claim against the dataset and gives its verdict, with the numbers that led to it.

Owns how tests are decided and the file verdicts.json. The policy is docs/claims.md: limits come from the
paper, and one that lies inside a 95 % interval decides nothing. Must not know any study.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from longfat.analysis import statistics
from longfat.analysis.claims import CLAIMS, Claim, load_claims, study_beside
from longfat.analysis.expressions import (
    AllTest,
    DifferenceTest,
    EqualTest,
    FormulaTest,
    GainTest,
    NotTestable,
    OrderTest,
    Quantity,
    RankTest,
    RatioTest,
    ValueTest,
    base_units,
    compute,
)
from longfat.analysis.metric_table import METRICS
from longfat.analysis.metrics import NoValue
from longfat.analysis.quantities import Selection, measure, significant
from longfat.analysis.ranking import rank_of
from longfat.analysis.statistics import Summary
from longfat.dataset.load import Dataset, load_dataset
from longfat.errors import RigError
from longfat.manifest.study import Study
from longfat.runspec import Scalar

VERDICTS = "verdicts.json"
Outcome = Literal["holds", "fails", "undecided", "no_data"]
VerdictWord = Literal["reproduced", "not_reproduced", "inconclusive", "not_testable"]
VERDICT_WORDS: tuple[VerdictWord, ...] = ("reproduced", "not_reproduced", "inconclusive", "not_testable")


@dataclass(frozen=True)
class Evidence:
    """One comparison: what, its mean, standard deviation, n and 95 % interval, the limit, and the outcome.

    ``n`` of None marks a computed value. The numbers are None when there was no data; ``reason`` says why.
    """

    what: str
    unit: str
    limit: str
    outcome: Outcome
    mean: float | None = None
    sd: float | None = None
    n: int | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Verdict:
    """A claim's verdict with its evidence. ``paper`` is the stated value as text, ``where`` its place."""

    claim: str
    artifact: str | None
    also: tuple[str, ...]
    kind: str
    statement: str
    paper: str
    where: str
    verdict: VerdictWord
    reason: str | None
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Grounds:
    """What claims are judged on; ``labels`` has the manifest's wording of factor values, by experiment."""

    dataset: Dataset
    labels: Mapping[tuple[str, str, Scalar], str] = field(default_factory=dict)

    def label(self, experiment: str, factor: str, value: Scalar) -> str:
        """The factor's value as the manifest words it, or as the lock has it."""
        return self.labels.get((experiment, factor, value), str(value))


def judge(results: Path, study_dir: Path) -> list[Verdict]:
    """Give every claim of the study its verdict, in the order of claims.yaml, and write ``verdicts.json``.

    Raises StudyError on faulty claims, RigError when the dataset is missing or nothing can be written.
    """
    claims = load_claims(study_dir / CLAIMS)
    grounds = Grounds(load_dataset(results), _labels(study_beside(study_dir / CLAIMS)))
    verdicts = [decide(claim, grounds) for claim in claims]
    data = {"format": 1, "verdicts": [dataclasses.asdict(verdict) for verdict in verdicts]}
    text = json.dumps(data, sort_keys=True, indent=1, ensure_ascii=True) + "\n"
    path = results / VERDICTS
    draft = path.with_name(f".{VERDICTS}-{os.getpid()}")
    try:
        draft.write_text(text, encoding="ascii")
        draft.replace(path)
    except OSError as error:
        raise RigError(f"cannot write the verdicts: {error}", where=str(path)) from error
    return verdicts


def read_verdicts(results: Path) -> list[Verdict]:
    """The verdicts as ``judge`` wrote them. Raises RigError when they are missing or damaged."""
    path = results / VERDICTS
    try:
        rows = json.loads(path.read_text(encoding="ascii"))["verdicts"]
        return [
            Verdict(
                **{**row, "also": tuple(row["also"])}
                | {"evidence": tuple(Evidence(**item) for item in row["evidence"])}
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "judge again with `longfat analyse STUDY`"
        raise RigError(f"the verdicts cannot be read: {error!r}", where=str(path), hint=hint) from error


def _labels(study: Study | None) -> dict[tuple[str, str, Scalar], str]:
    return {
        (experiment.id, factor, value): point.labels[factor]
        for experiment in (study.experiments if study else ())
        for point in experiment.points
        for factor, value in point.factors.items()
    }


def decide(claim: Claim, grounds: Grounds) -> Verdict:
    """The verdict on one claim."""
    word: VerdictWord
    reason: str | None
    if isinstance(claim.test, NotTestable):
        evidence: tuple[Evidence, ...] = ()
        word, reason = "not_testable", claim.test.reason
    else:
        evidence = tuple(_comparisons(claim.test, grounds))
        word, reason = _combined(evidence)
    return Verdict(
        claim=claim.id,
        artifact=claim.artifact,
        also=claim.also,
        kind=claim.kind,
        statement=claim.statement,
        paper=claim.paper.text(),
        where=claim.paper.where,
        verdict=word,
        reason=reason,
        evidence=evidence,
    )


def _combined(evidence: tuple[Evidence, ...]) -> tuple[VerdictWord, str | None]:
    """All comparisons must hold; one that fails decides, else one that is open leaves the claim open."""
    failed = [item for item in evidence if item.outcome == "fails"]
    if failed:
        return "not_reproduced", _first(failed)
    empty = [item for item in evidence if item.outcome == "no_data"]
    if empty:
        return "inconclusive", empty[0].reason
    open_ = [item for item in evidence if item.outcome == "undecided"]
    if open_:
        return "inconclusive", f"a limit lies inside the 95 % interval: {_first(open_)}"
    return "reproduced", None


def _first(items: list[Evidence]) -> str:
    more = f" (and {len(items) - 1} more)" if len(items) > 1 else ""
    return f"measured {_number(items[0].mean)}, allowed {items[0].limit}{more}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.5g}"


def _comparisons(test: Any, grounds: Grounds) -> Iterator[Evidence]:
    """The comparisons that a test consists of."""
    if isinstance(test, AllTest):
        for part in test.tests:
            yield from _comparisons(part, grounds)
    elif isinstance(test, OrderTest):
        yield from _order(test, grounds)
    elif isinstance(test, EqualTest):
        yield from _equality(test, grounds)
    elif isinstance(test, RankTest):
        yield _rank(test, grounds)
    else:
        what, unit = _described(test)
        low, high, inclusive = test.bounds()
        yield _compared(lambda: _value(test, grounds.dataset), what, unit, low, high, inclusive)


def _value(test: Any, dataset: Dataset) -> Summary:
    if isinstance(test, FormulaTest):
        value = compute(test.formula, test.arguments)
        return Summary(value, None, 0, value, value)
    of = measure(dataset, test.of.selection())
    if isinstance(test, RatioTest):
        return statistics.ratio(of, measure(dataset, test.to.selection()))
    if isinstance(test, GainTest):
        return statistics.percent_gain(of, measure(dataset, test.over.selection()))
    if isinstance(test, DifferenceTest):
        return statistics.difference(of, measure(dataset, test.minus.selection()))
    return of


def _order(test: OrderTest, grounds: Grounds) -> Iterator[Evidence]:
    """Each neighbour in the order exceeds the next: their difference is above zero."""
    unit = METRICS[test.of.metric].unit
    for selection, place in _each(test.of, test.for_each, grounds):
        for upper, lower in pairwise(test.descending):
            less = f" less {_named(test.minus)}" if test.minus else ""
            what = f"{_named(test.of)}{less}, {upper} less {lower}{place}"
            above, below = (selection.narrowed(test.by, base_units(value)) for value in (upper, lower))
            gap = partial(_gap, grounds.dataset, above, below, test.minus)
            yield _compared(gap, what, unit, 0.0, math.inf, False)


def _equality(test: EqualTest, grounds: Grounds) -> Iterator[Evidence]:
    """The largest mean exceeds the smallest by no more than the tolerance."""
    for selection, place in _each(test.of, test.for_each, grounds):
        what = f"{_named(test.of)}, highest over lowest {test.across}{place}"
        widest = partial(_widest, grounds.dataset, selection, test.across)
        yield _compared(widest, what, "%", -math.inf, test.percent, True)


def _rank(test: RankTest, grounds: Grounds) -> Evidence:
    """The rank of one value of the factor, 1 for the best."""
    value = base_units(test.value)
    shown = f"{test.by} {grounds.label(test.of.experiment, test.by, value)}"
    what = f"rank of {shown} by {_named(test.of)}, where alike by {_named(test.then)}"
    place = partial(rank_of, grounds.dataset, test.of.selection(), test.then.selection(), test.by, value)
    return _compared(place, what, "", *test.bounds())


def _gap(dataset: Dataset, upper: Selection, lower: Selection, minus: Quantity | None) -> Summary:
    """One less the other; with ``minus`` of each its excess over that, at the values it was narrowed to."""
    return statistics.difference(_excess(dataset, upper, minus), _excess(dataset, lower, minus))


def _excess(dataset: Dataset, selection: Selection, minus: Quantity | None) -> Summary:
    value = measure(dataset, selection)
    if minus is None:
        return value
    own = minus.selection()
    return statistics.difference(value, measure(dataset, dataclasses.replace(own, where=own.where + selection.added)))


def _widest(dataset: Dataset, selection: Selection, factor: str) -> Summary:
    """By how many percent the largest mean along the factor exceeds the smallest."""
    values = dict.fromkeys(run.factors[factor] for run in selection.chosen(dataset))
    if len(values) < 2:
        raise NoValue(f"the lock has {len(values)} of the values of {factor!r} to compare")
    found = [measure(dataset, selection.narrowed(factor, value)) for value in values]
    ends = max(found, key=lambda item: item.mean), min(found, key=lambda item: item.mean)
    return statistics.percent_gain(*ends)


def _each(quantity: Quantity, factor: str | None, grounds: Grounds) -> Iterator[tuple[Selection, str]]:
    """The selection for each value of the factor in the lock, ascending; itself without a factor."""
    selection = quantity.selection()
    runs = selection.chosen(grounds.dataset)
    if factor is None or not runs:
        yield selection, ""
        return
    for value in sorted({run.factors[factor] for run in runs}, key=lambda item: (str(type(item)), item)):
        yield (
            selection.narrowed(factor, value),
            f" at {factor} {grounds.label(quantity.experiment, factor, value)}",
        )


def _compared(
    evaluate: Callable[[], Summary], what: str, unit: str, low: float, high: float, inclusive: bool
) -> Evidence:
    """Hold a value with its interval against the limits: inside, outside, or undecided."""
    limit = _limit_text(low, high, inclusive, unit)
    try:
        value = evaluate()
    except (NoValue, ValueError) as error:
        return Evidence(what, unit, limit, "no_data", reason=str(error))
    mean, sd, lowest, highest = (
        None if number is None else significant(number) for number in (value.mean, value.sd, value.low, value.high)
    )
    assert lowest is not None and highest is not None
    outcome: Outcome
    if inclusive:
        inside, outside = low <= lowest and highest <= high, highest < low or lowest > high
    else:
        inside, outside = low < lowest and highest < high, highest <= low or lowest >= high
    outcome = "holds" if inside else "fails" if outside else "undecided"
    return Evidence(what, unit, limit, outcome, mean, sd, value.n or None, lowest, highest)


def _limit_text(low: float, high: float, inclusive: bool, unit: str) -> str:
    if math.isinf(low):
        return f"{'at most' if inclusive else 'below'} {high:,.10g} {unit}".strip()
    if math.isinf(high):
        return f"{'at least' if inclusive else 'above'} {low:,.10g} {unit}".strip()
    return f"{low:,.10g} to {high:,.10g} {unit}".strip()


def _described(test: Any) -> tuple[str, str]:
    """What a single comparison is about, and its unit."""
    if isinstance(test, FormulaTest):
        arguments = ", ".join(f"{name} {value}" for name, value in test.arguments.items())
        return f"{test.formula.replace('_', ' ')} ({arguments})", ""
    unit = METRICS[test.of.metric].unit
    if isinstance(test, RatioTest):
        return f"{_named(test.of)} over {_named(test.to)}", ""
    if isinstance(test, GainTest):
        return f"{_named(test.of)}, gain over {_named(test.over)}", "%"
    if isinstance(test, DifferenceTest):
        return f"{_named(test.of)} less {_named(test.minus)}", unit
    assert isinstance(test, ValueTest)
    return _named(test.of), unit


def _named(quantity: Quantity) -> str:
    """Metric, experiment, conditions and flow in words."""
    conditions = [f"{name} {condition.text}" for name, condition in quantity.where.items()]
    flow = [f"flow {quantity.flow}"] if quantity.flow else []
    return " ".join([f"{METRICS[quantity.metric].meaning} of {quantity.experiment}", *conditions, *flow])
