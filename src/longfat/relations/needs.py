# SPDX-License-Identifier: Apache-2.0
"""The condition on the runs of a claim: traffic that lasts long enough. Judges nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Selection, metric_of_run
from longfat.relations.claims import Claim, Needs
from longfat.relations.evaluate import Grounds


def unmet(claim: Claim, grounds: Grounds) -> str | None:
    """Return the first condition that the claim's runs do not meet; None without one."""
    if claim.needs is None:
        return None
    selections = (one for of in claim.relations for one in of.selections(grounds.study, grounds.values_of))
    asked = (pair for selection in selections for pair in asked_of(claim.needs, selection))
    return next((fault for limit, one in asked if (fault := _fault(limit, one, grounds))), None)


def asked_of(needs: Needs, selection: Selection) -> Iterator[tuple[float, Selection]]:
    """Yield the metric that a selection's runs must have, with its smallest allowed value."""
    if seconds := needs.lasts_in(selection.experiment):
        yield seconds, dataclasses.replace(selection, metric="lasts", flow=None, parameters={})


def _fault(limit: float, asked: Selection, grounds: Grounds) -> str | None:
    metric, dataset = METRICS[asked.metric], grounds.dataset
    required = f"{metric.meaning} must be at least {limit:g} {metric.unit}"
    try:
        found = [metric_of_run(dataset, run, asked) for run in asked.chosen(dataset) if run.status == "ok"]
    except NoValue as error:
        return f"{required}, and is not known: {error}"
    return f"{required}, and is {min(found):.4g}" if found and min(found) < limit else None
