# SPDX-License-Identifier: Apache-2.0
"""Which evidence of an epoch holds in the next one: that of runs of which canaries tell that they are the same. Pure.

A canary of an algorithm, of a kind of queue, of a kind of traffic, of transfers, of parallel streams, of flows with a
rate, of an impaired path or of cards speaks for the runs that have the same. One with nothing but single connections of
Reno or CUBIC through plain queues speaks for every run. A row is carried over if no canary that differs speaks for its
run, and if each thing that is particular to the run is in a canary that is alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from longfat.evidence.planned import Planned, planned_or_none
from longfat.evidence.rows import Row
from longfat.evidence.store import Place, Rows
from longfat.manifest.study import Study
from longfat.runspec import KINDS, RunSpec

ORDINARY = frozenset({"algorithm reno", "algorithm cubic", "queue pfifo"})
"""What a canary may have and still speak for every run."""


def features(spec: RunSpec) -> frozenset[str]:
    """What of a run only some runs have."""
    egresses = [end.egress for link in spec.links for end in (link.a, link.b)]
    found = {f"algorithm {traffic.cca}" for traffic in spec.traffic}
    found |= {f"queue {egress.queue.kind}" for egress in egresses}
    found |= {f"traffic {kind}" for kind in KINDS if kind != "flows" and getattr(spec, kind)}
    found |= {"streams" for flow in spec.flows if flow.streams > 1}
    found |= {"transfers" for flow in spec.flows if flow.transfer_bytes}
    found |= {"rate" for flow in spec.flows if flow.rate_bps}
    found |= {"impairment" for egress in egresses if egress.impairment}
    return frozenset(found | {"card" for egress in egresses if egress.card})


def parted(
    rows: Rows, study: Study, alike: Iterable[RunSpec], differing: Iterable[RunSpec], epoch: str
) -> tuple[Rows, Rows]:
    """The rows that stay in their epoch, and those that hold in ``epoch`` as well, at their places there.

    ``alike`` and ``differing`` are the canaries of both epochs. A row stays also where the study has no such run today.
    """
    known = frozenset().union(*map(features, alike)) | ORDINARY
    special = [features(canary) - ORDINARY for canary in differing]
    stay: dict[Place, dict[tuple[str, int, str], Row]] = {place: {} for place in rows}
    carried: dict[Place, dict[tuple[str, int, str], Row]] = {}
    plans: dict[tuple[str, str], Planned | None] = {}
    for place, own in rows.items():
        of = place.stack, place.profile
        if of not in plans:
            plans[of] = planned_or_none(study, *of)
        for key, row in own.items():
            if _holds(plans[of], row, known, special):
                there = Place(epoch, place.stack, place.profile, place.experiment)
                carried.setdefault(there, {})[key] = row
            else:
                stay[place][key] = row
    return stay, carried


def _holds(planned: Planned | None, row: Row, known: frozenset[str], special: list[frozenset[str]]) -> bool:
    run = planned.run(row.scenario, row.repetition) if planned else None
    if run is None:
        return False
    own = features(run.spec)
    return own <= known and not any(one <= own for one in special)
