# SPDX-License-Identifier: Apache-2.0
"""Conditions on runs before a claim is judged on them: long enough, with enough epochs, on a busy path.

Owns the reading of a claim's ``needs``. Judges nothing.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Selection, metric_of_run
from longfat.relations.claims import Claim, Needs
from longfat.relations.evaluate import Grounds


def unmet(claim: Claim, grounds: Grounds) -> str | None:
    """Return the first need that the claim's runs do not meet; None if there is none."""
    return next(_lacking(claim, claim.needs, grounds), None) if claim.needs is not None else None


def _lacking(claim: Claim, needs: Needs, grounds: Grounds) -> Iterator[str]:
    for relation in claim.relations:
        for selection in relation.selections(grounds.study, grounds.values_of):
            if needs.at_least_n is not None:
                yield from _too_few(needs.at_least_n, selection, grounds)
            for limit, asked in asked_of(needs, selection):
                yield from _below(limit, asked, grounds)


def _too_few(least: int, selection: Selection, grounds: Grounds) -> Iterator[str]:
    chosen = selection.chosen(grounds.dataset)
    counts = Counter(run.scenario for run in chosen if run.status == "ok")
    fewest = min((counts[run.scenario] for run in chosen), default=0)
    if fewest < least:
        yield f"needs {least} runs of each scenario, the fewest are {fewest}"


def asked_of(needs: Needs, selection: Selection) -> Iterator[tuple[float, Selection]]:
    """Yield the metrics that tell whether a selection's runs meet the needs, each with its smallest allowed value."""
    bare = dataclasses.replace(selection, flow=None, parameters={})
    if seconds := needs.lasts_in(selection.experiment):
        yield seconds, dataclasses.replace(bare, metric="lasts")
    if needs.epochs is not None:
        yield needs.epochs, dataclasses.replace(bare, metric="cuts", flow=selection.flow)
    if needs.utilisation is not None:
        yield needs.utilisation, dataclasses.replace(bare, metric="utilisation", parameters={"since": 0.0})


def _below(limit: float, asked: Selection, grounds: Grounds) -> Iterator[str]:
    metric, dataset = METRICS[asked.metric], grounds.dataset
    required = f"{metric.meaning} must be at least {limit:g} {metric.unit}"
    try:
        found = [metric_of_run(dataset, run, asked) for run in asked.chosen(dataset) if run.status == "ok"]
    except NoValue as error:
        yield f"{required}, and is not known: {error}"
        return
    if found and min(found) < limit:
        yield f"{required}, and is {min(found):.4g}"
