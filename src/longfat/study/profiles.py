# SPDX-License-Identifier: Apache-2.0
"""Thinning of experiments by profiles, and checks of the names in profiles. A profile never adds anything."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longfat.spec.runspec import Scalar
from longfat.spec.units import Duration, Ratio
from longfat.study.changing import Changing
from longfat.study.lint import drop_findings
from longfat.study.models import Experiment
from longfat.study.schema.names import Finding, nearest, unknown
from longfat.study.study import Point, SweptExperiment
from longfat.study.sweep import base_value, same
from longfat.study.thinning import Profile, Profiles, Thinning
from longfat.study.traffic import SECTIONS
from longfat.study.traffic.kind import Entry

PROFILES = (*Profiles.model_fields, "paper")

_WHOLE = Ratio(1_000_000)

Factors = Mapping[str, Sequence[Scalar]]
"""The factors of an experiment with their values in base units."""


def thinned(swept: SweptExperiment, profile: Profile | None) -> SweptExperiment:
    """Thin an experiment by a profile; None, the paper's profile, changes nothing."""
    if profile is None:
        return swept
    if profile.leaves_out(swept.id):
        return dataclasses.replace(swept, points=())
    rule = _rule(swept, profile)
    points = [point for point in swept.points if _kept(point.factors, rule.keep)]
    if rule.rest:
        first: dict[tuple[Scalar, ...], Point] = {}
        for point in points:
            first.setdefault(tuple(point.factors[name] for name in rule.keep), point)
        points = list(first.values())
    return SweptExperiment(
        id=swept.id,
        repetitions=min(swept.repetitions, rule.repetitions or swept.repetitions),
        factors=swept.factors,
        points=tuple(Point(point.factors, point.labels, _shortened(point.experiment, rule)) for point in points),
        derived=swept.derived,
    )


def _rule(swept: SweptExperiment, profile: Profile) -> Thinning:
    """Lay the entries for an experiment over each other."""
    said: dict[str, Any] = {}
    keep: dict[str, tuple[Scalar, ...]] = {}
    for entry in profile.entries(swept.id):
        own = {key: getattr(entry, key) for key in Thinning.model_fields}
        said |= {key: value for key, value in own.items() if value is not None}
        keep |= {name: values for name, values in entry.keep.items() if name in swept.factors}
    return Thinning.model_construct(**{**said, "keep": keep})


def _kept(factors: Mapping[str, Scalar], keep: Factors) -> bool:
    return all(any(same(factors[name], base_value(given)) for given in keep[name]) for name in keep)


def _shortened(experiment: Experiment, rule: Thinning) -> Experiment:
    if rule.duration is None and rule.starts is None:
        return experiment
    changed = {
        name: tuple(entry.model_copy(update=_times(entry, rule)) for entry in getattr(experiment, name))
        for name in SECTIONS
    }
    length = experiment.duration and rule.duration and min(experiment.duration, rule.duration)
    return experiment.model_copy(update={**changed, **({"duration": length} if length else {})})


def _times(traffic: Entry, rule: Thinning) -> dict[str, Duration]:
    part = rule.starts or _WHOLE
    times = {
        "start": Duration(traffic.start.value * part.value // _WHOLE.value),
        "duration": min(traffic.duration, rule.duration or traffic.duration),
    }
    return {key: time for key, time in times.items() if getattr(traffic, key) != time}


def profile_findings(
    profile: Profile, factors: Mapping[str, Factors | None], experiments: Sequence[SweptExperiment]
) -> list[Finding]:
    """Return findings of unknown names, and of thinning that removes all points or a deliberate drop.

    ``factors`` has all experiments of the study by id, with None for a sweep that cannot be read;
    ``experiments`` has the experiments without a fault.
    """
    found: list[Finding] = []
    if None not in factors.values():
        found += _keep_findings(profile, _together(factors))
    for index, name in enumerate(profile.leave_out):
        if not fnmatch.filter(factors, name):
            found.append(Finding(("leave_out", index), *unknown("experiment", name, factors)))
    for name, own in profile.experiments.items():
        place = ("experiments", name)
        its = {experiment: factors[experiment] for experiment in fnmatch.filter(factors, name)}
        if not its:
            found.append(Finding(place, *unknown("experiment", name, factors)))
        elif all(profile.leaves_out(experiment) for experiment in its):
            found.append(Finding(place, f"experiment {name!r} is left out, so it cannot be thinned"))
        elif None not in its.values():
            found += [fault.below(*place) for fault in _keep_findings(own, _together(its))]
    return found or [fault for swept in experiments for fault in _outcome_findings(profile, swept)]


def _together(factors: Mapping[str, Factors | None]) -> Factors:
    """Merge the values of each factor over experiments: a general entry need not fit all of them."""
    result: dict[str, list[Scalar]] = {}
    for its in factors.values():
        for name, values in (its or {}).items():
            result.setdefault(name, []).extend(values)
    return result


def _keep_findings(rule: Thinning, factors: Factors) -> Iterator[Finding]:
    for name, kept in rule.keep.items():
        if name not in factors:
            yield Finding(("keep", name), *unknown("factor", name, factors))
            continue
        for index, given in enumerate(kept):
            if not any(same(base_value(given), value) for value in factors[name]):
                texts = [str(value) for value in dict.fromkeys(factors[name])]
                message = f"{name} never is {given!r}; its values in base units: {', '.join(texts)}"
                yield Finding(("keep", name, index), message, nearest(given, texts))


def _outcome_findings(profile: Profile, swept: SweptExperiment) -> Iterator[Finding]:
    if profile.leaves_out(swept.id):
        return
    rest = thinned(swept, profile)
    if not rest.points:
        yield Finding(("keep",), f"leaves no point of experiment {swept.id!r}")
    lost = {f"{what}: {fault.message}": None for point in rest.points for what, fault in _too_late(point.experiment)}
    for message in lost:
        yield Finding(("duration",), f"experiment {swept.id!r} loses its {message}", "give it its own duration")


def _too_late(experiment: Experiment) -> Iterator[tuple[str, Finding]]:
    """Yield the drops and changes of the path after the end; at full length the experiment has no fault."""
    for fault in drop_findings(experiment):
        yield "drop", fault
    if isinstance(experiment.topology, Changing):
        for fault in experiment.topology.change_findings(experiment.end_us, reverse_rate=True):
            yield "change", fault
