# SPDX-License-Identifier: Apache-2.0
"""Which evidence of an epoch holds in the next one: that of runs for which no canary that differs speaks. Pure.

A canary of an algorithm, of a kind of queue or of an impaired path speaks for the runs that have the same. One with
nothing but Reno, CUBIC and plain queues speaks for every run.
"""

from __future__ import annotations

from collections.abc import Iterable

from longfat.evidence.planned import Planned, planned_or_none
from longfat.evidence.rows import Row
from longfat.evidence.store import Place, Rows
from longfat.manifest.study import Study
from longfat.runspec import RunSpec

ORDINARY = frozenset({"algorithm reno", "algorithm cubic", "queue pfifo"})
"""What a canary may have and still speak for every run."""


def features(spec: RunSpec) -> frozenset[str]:
    """What of a run only some runs have: its algorithms, its kinds of queue, an impaired path."""
    egresses = [end.egress for link in spec.links for end in (link.a, link.b)]
    found = {f"algorithm {traffic.cca}" for traffic in spec.traffic}
    found |= {f"queue {egress.queue.kind}" for egress in egresses}
    return frozenset(found | {"impairment" for egress in egresses if egress.impairment})


def speaks_for(canary: RunSpec, run: RunSpec) -> bool:
    """Whether a canary tells something of a run: the run has all that is particular to the canary."""
    return features(canary) - ORDINARY <= features(run)


def parted(rows: Rows, study: Study, differing: Iterable[RunSpec], epoch: str) -> tuple[Rows, Rows]:
    """The rows that stay in their epoch, and those that hold in ``epoch`` as well, at their places there.

    A row stays if a canary of ``differing`` speaks for it, or if the study has no such run today.
    """
    canaries = list(differing)
    stay: dict[Place, dict[tuple[str, int, str], Row]] = {place: {} for place in rows}
    carried: dict[Place, dict[tuple[str, int, str], Row]] = {}
    known: dict[tuple[str, str], Planned | None] = {}
    for place, own in rows.items():
        of = place.stack, place.profile
        if of not in known:
            known[of] = planned_or_none(study, *of)
        for key, row in own.items():
            if _holds(known[of], row, canaries):
                there = Place(epoch, place.stack, place.profile, place.experiment)
                carried.setdefault(there, {})[key] = row
            else:
                stay[place][key] = row
    return stay, carried


def _holds(planned: Planned | None, row: Row, differing: list[RunSpec]) -> bool:
    run = planned.run(row.scenario, row.repetition) if planned else None
    return run is not None and not any(speaks_for(canary, run.spec) for canary in differing)
