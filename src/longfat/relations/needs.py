# SPDX-License-Identifier: Apache-2.0
"""Conditions on runs before a claim is judged on them: long enough, with enough epochs, on a path that is used.

Owns the reading of a claim's ``needs``. Judges nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from longfat.dataset.load import Run
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.orders import Judged
from longfat.metrics.quantities import Selection, metric_of_run
from longfat.metrics.statistics import Estimate, exactly
from longfat.relations.claims import Claim, Needs
from longfat.relations.evaluate import Grounds, comparisons
from longfat.runspec import Scalar


def unmet(claim: Claim, grounds: Grounds) -> str | None:
    """The unmet need of the claim's runs; None where there is no need or all are met."""
    if claim.needs is None:
        return None
    asked = _Asked(grounds.study, grounds.dataset)
    for relation in claim.relations:
        list(comparisons(relation, asked))
    return next(_lacking(claim.needs, asked.selections, grounds), None)


def _lacking(needs: Needs, selections: list[Selection], grounds: Grounds) -> Iterator[str]:
    for selection in selections:
        runs = [run for run in selection.chosen(grounds.dataset) if run.status == "ok"]
        if needs.at_least_n is not None:
            counts = {run.scenario: 0 for run in selection.chosen(grounds.dataset)}
            for run in runs:
                counts[run.scenario] += 1
            least = min(counts.values(), default=0)
            if least < needs.at_least_n:
                yield f"needs {needs.at_least_n} runs of each scenario, the fewest are {least}"
        for limit, asked in asked_of(needs, selection):
            yield from _below(limit, asked, runs, grounds)


def asked_of(needs: Needs, selection: Selection) -> Iterator[tuple[float, Selection]]:
    """The metrics that show whether a selection's runs do, with the smallest allowed value of each."""
    bare = dataclasses.replace(selection, flow=None, parameters={})
    if seconds := needs.lasts_in(selection.experiment):
        yield seconds, dataclasses.replace(bare, metric="lasts")
    if needs.epochs is not None:
        yield needs.epochs, dataclasses.replace(bare, metric="cuts", flow=selection.flow)
    if needs.utilisation is not None:
        yield needs.utilisation, dataclasses.replace(bare, metric="utilisation", parameters={"since": 0.0})


def _below(limit: float, asked: Selection, runs: Sequence[Run], grounds: Grounds) -> Iterator[str]:
    metric = METRICS[asked.metric]
    try:
        found = [metric_of_run(grounds.dataset, run, asked) for run in runs]
    except NoValue as error:
        yield f"{metric.meaning} must be at least {limit:g} {metric.unit}, and is not known: {error}"
        return
    if found and min(found) < limit:
        yield f"{metric.meaning} must be at least {limit:g} {metric.unit}, and is {min(found):.4g}"


@dataclass(frozen=True)
class _Asked(Grounds):
    """Grounds that measure nothing and record the questions."""

    selections: list[Selection] = field(default_factory=list)

    def read(self, selection: Selection, least: int | None) -> Estimate:
        """Any number will do."""
        self.selections.append(selection)
        return exactly(1.0)

    def middle(self, selection: Selection, least: int | None) -> Judged:
        """Any number will do."""
        return self.read(selection, least)

    def count(self, selections: Sequence[Selection], holds: Callable[[float], bool]) -> Judged:
        """Any number will do."""
        self.selections.extend(selections)
        return exactly(1.0)

    def place(self, of: Selection, then: Selection, factor: str, value: Scalar) -> Judged:
        """Any number will do."""
        self.selections.append(then)
        return self.read(of, None)
