# SPDX-License-Identifier: Apache-2.0
"""Checks of a study's claims before any run.

Owns four rules: a test must hold for the paper's own numbers; claims that exclude each other, or that have the same
test, count once; an experiment must have enough repetitions to decide, for and against; where cuts of a window are
counted, sockets are sampled in each round trip. Judges no run.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations

from longfat.metrics import METRICS
from longfat.metrics.cuts import cut_places
from longfat.metrics.definitions import depends_on
from longfat.relations.claims import Claim
from longfat.relations.evaluate import LEAST_OF_ALL, Evidence, Rule, comparisons, decided
from longfat.relations.limits import LEVEL
from longfat.relations.nodes import Expression, terms_of
from longfat.relations.paper import PaperNumbers, Test, printed_numbers, tests_of
from longfat.relations.tree import metric_behind
from longfat.study.models import Experiment, Hosts
from longfat.study.schema.names import Finding
from longfat.study.study import Study, host_settings
from longfat.study.topologies import Dumbbell
from longfat.study.warn import varies


def grouped(claims: Sequence[Claim], study: Study) -> tuple[Claim, ...]:
    """Return the claims with ``same_as`` and ``contradicts``, by comparing their tests over the study's points."""
    tests = {claim.id: tuple(tests_of(claim, study)) for claim in claims}
    excluded = _excluded(claims, tests)
    firsts: dict[Hashable, str] = {}
    found = []
    for claim in claims:
        test = frozenset(one[:2] for one in tests[claim.id])
        conditions = claim.needs and claim.needs.model_dump_json(), claim.scenario_differs, claim.kind
        first = firsts.setdefault((test, conditions), claim.id) if test else claim.id
        same_as = first if first != claim.id else None
        found.append(dataclasses.replace(claim, same_as=same_as, contradicts=excluded[claim.id]))
    return tuple(found)


def _excluded(claims: Sequence[Claim], tests: Mapping[str, Sequence[Test]]) -> dict[str, tuple[str, ...]]:
    """Return, by claim, the claims with disjoint limits on the same quantity."""
    by_quantity: dict[Hashable, list[tuple[str, Test]]] = defaultdict(list)
    for claim in claims:
        for test in tests[claim.id]:
            by_quantity[test.quantity].append((claim.id, test))
    excluded: dict[str, dict[str, None]] = {claim.id: {} for claim in claims}
    for rows in by_quantity.values():
        for (one, a), (other, b) in combinations(rows, 2):
            if one != other and a.allowed.excludes(b.allowed):
                excluded[one][other] = excluded[other][one] = None
    return {claim: tuple(others) for claim, others in excluded.items()}


def contradicted(claims: Sequence[Claim], study: Study) -> Iterator[Finding]:
    """Yield the claims that contradict the paper's own numbers."""
    papers = printed_numbers(claims, study)
    for claim in claims:
        for item in () if claim.inconsistent or not claim.measured else _on_paper(claim, papers):
            if item.outcome == "not reproduced":
                found = f"{item.what} is {item.mean:,.6g} {item.unit}".rstrip()
                message = f"claim {claim.id!r} does not hold for the paper's own numbers: {found}, allowed {item.limit}"
                hint = "correct the test, or mark the statement `inconsistent: {where: ..., reason: ...}`"
                yield Finding(claim.place, message, hint)


def without_oracle(claims: Sequence[Claim], study: Study) -> list[str]:
    """Return the ids of measured claims without all of the paper's own numbers."""
    papers = printed_numbers(claims, study)
    return [
        claim.id
        for claim in claims
        if claim.measured
        and any(
            item.outcome == "undecided" and test.number is None
            for item, test in zip(_on_paper(claim, papers), tests_of(claim, study), strict=True)
        )
    ]


def _on_paper(claim: Claim, papers: Mapping[str, PaperNumbers]) -> tuple[Evidence, ...]:
    paper = papers[claim.id]
    return decided(one for relation in claim.relations for one in comparisons(relation, paper, Rule(paper=paper)))


def without_contradiction(claims: Sequence[Claim], study: Study) -> Iterator[Finding]:
    """Yield the claims with medians that no outcome of the stated repetitions could contradict.

    The sign test of n runs has a p value of 2^(1 - n) at least, which Holm's procedure compares with the level of one
    of the claim's comparisons.
    """
    stated = {one.id: max(one.repetitions, study.header.stated_repetitions) for one in study.experiments}
    for claim in (one for one in claims if one.measured):
        parts = sum(1 for _ in tests_of(claim, study))
        needed = 1 + math.ceil(math.log2(max(parts, 1) / LEVEL))
        medians = [one for one in claim.relations if any(_is_median(part.of) for part in one.comparisons)]
        for name in dict.fromkeys(name for relation in medians for name in relation.experiments(study)):
            if stated[name] < needed:
                message = f"{stated[name]} stated repetitions of {name!r} cannot contradict a median of {claim.id!r}"
                hint = f"write `repetitions: {needed}` into the experiment: the claim has {parts} comparisons"
                yield Finding((*claim.place, "relation"), message, hint)


def _is_median(of: Expression) -> bool:
    known = metric_behind(of)
    return known is not None and known.judged_by == "median"


def few_repetitions(claims: Sequence[Claim], study: Study) -> Iterator[Finding]:
    """Yield the experiments with too few repetitions to decide a claim, unless all repetitions are equal."""
    about: dict[str, dict[str, None]] = defaultdict(dict)
    for claim in claims:
        for relation in claim.relations:
            for name in relation.experiments(study):
                about[name][claim.id] = None
    for index, swept in enumerate(study.experiments):
        names = list(about[swept.id])
        drawing = any(varies(point.experiment, study.header) for point in swept.points)
        if names and drawing and swept.repetitions < LEAST_OF_ALL:
            others = f" and {len(names) - 1} more" if len(names) > 1 else ""
            message = f"{swept.repetitions} repetitions of {swept.id!r} decide no claim: {LEAST_OF_ALL} are needed by"
            hint = f"write `repetitions: {LEAST_OF_ALL}`"
            yield Finding(("experiments", index, "repetitions"), f"{message} {max(names)!r}{others}", hint)


def rare_samples(claims: Sequence[Claim], study: Study) -> Iterator[Finding]:
    """Yield the experiments whose sockets are sampled too rarely for their claims on cuts of the window.

    A cut lasts a round trip through the full queue, and a sample in this time shows it. Topologies other than dumbbells
    and experiments without a claim on cuts pass.
    """
    about: dict[str, str] = {}
    for claim in claims:
        terms = [term for relation in claim.relations for term in terms_of(*relation.sides)]
        if any(term.metric in METRICS and depends_on(METRICS[term.metric], cut_places.__name__) for term in terms):
            for name in dict.fromkeys(name for relation in claim.relations for name in relation.experiments(study)):
                about.setdefault(name, claim.id)
    for index, swept in enumerate(study.experiments):
        pairs = [
            (point.experiment.probes.sockets.value, rtt_us)
            for point in swept.points
            if swept.id in about and (rtt_us := _longest_rtt_us(point.experiment, study.header.hosts)) is not None
        ]
        if rare := [(interval_us, rtt_us) for interval_us, rtt_us in pairs if interval_us > rtt_us]:
            interval_us, rtt_us = max(rare, key=lambda pair: pair[0] / pair[1])
            message = (
                f"sockets are sampled every {interval_us / 1000:g} ms, and a round trip through the full queue takes "
                f"{rtt_us / 1000:.0f} ms: claim {about[swept.id]!r} misses cuts of the window between two samples"
            )
            yield Finding(("experiments", index, "probes", "sockets"), message, "sample at least once in a round trip")


def _longest_rtt_us(experiment: Experiment, hosts: Hosts) -> float | None:
    """Return the microseconds of a round trip through the full queue of a dumbbell."""
    if not isinstance(experiment.topology, Dumbbell):
        return None
    _, queue, place = experiment.topology.queues(host_settings(hosts, experiment.hosts).mtu)[0]
    limit = queue.to_run(place)
    held = (limit.limit_packets or 0) * place.frame_bytes if limit.limit_bytes is None else limit.limit_bytes
    return place.rtt.value + 8e6 * held / place.rate.value
