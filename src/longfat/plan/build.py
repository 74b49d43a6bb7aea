# SPDX-License-Identifier: Apache-2.0
"""From a study to a plan: selection of profile, stack and experiments, expansion, order.

Pure: the same arguments give the same plan, byte for byte.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from longfat.backends.protocol import BEYOND_KERNELS, FEATURES, needed
from longfat.backends.registry import DEFAULT_BACKEND, lacking, traits_of
from longfat.plan.draw import digest
from longfat.plan.model import Excluded, Plan, PlannedRun
from longfat.plan.resolve import repeat, resolve
from longfat.spec.runspec import RunSpec
from longfat.study.catalog.stacks import STACKS
from longfat.study.profiles import PROFILES, thinned
from longfat.study.schema.names import unknown
from longfat.study.study import BACKEND, Point, Study, SweptExperiment
from longfat.system.errors import Problem, StudyError

_SLUG_LENGTH = 160  # leaves room for ".r<NN>.<id8>" and a suffix in a file name of 255 bytes


def build_plan(
    study: Study,
    *,
    profile: str = "quick",
    stack: str | None = None,
    seed: int | None = None,
    only: Sequence[str] = (),
    pins: Mapping[str, str],
    kernels: Mapping[str, str] = MappingProxyType({}),
    manifest_sha256: str = "",
    claims_sha256: str = "",
    chosen: Mapping[str, Collection[int]] | None = None,
) -> Plan:
    """Expand a study into all its runs, in order.

    Runs that no kernel supports are left out, with the reason, unless the backend in the pins supports them. If it runs
    in real time, all runs that it supports on no machine are left out. ``only`` names experiments; ``stack`` and
    ``seed`` take precedence over the study's. ``pins`` are the digests of kernel, image and guest code, ``kernels`` the
    digests of named kernels. A run that names no kernel has the stack's, and a run whose kernel is not in ``kernels``
    pins its name. ``chosen`` has the repetitions (from 1, without limit) of the selected scenarios, by name; None
    selects all of the study. Raises StudyError for unknown names, all at once.
    """
    stack = stack or study.header.stack
    seed = study.header.seed if seed is None else seed
    if seed < 0:
        raise StudyError(f"seed {seed} is negative; allowed: 0 or more", where="--seed")
    scenarios, excluded = scenarios_of(study, profile=profile, stack=stack, only=only, pins=pins, kernels=kernels)
    runs, kernel = [], STACKS[stack].kernel
    for scenario in scenarios:
        wanted = range(1, scenario.repetitions + 1) if chosen is None else sorted(chosen.get(scenario.name, ()))
        runs += [scenario.run(seed, repetition) for repetition in wanted]
    return Plan(
        study=study.name,
        profile=profile,
        stack=stack,
        seed=seed,
        manifest_sha256=manifest_sha256,
        claims_sha256=claims_sha256,
        pins={**pins, **({"kernel": kernels[kernel]} if kernel in kernels else {})},
        runs=_ordered(runs, seed),
        excluded=excluded,
    )


@dataclass(frozen=True)
class Scenario:
    """One point of a study under a profile and a stack.

    ``repetitions`` is their number in the profile; more can be run.
    """

    name: str
    experiment: str
    repetitions: int
    point: Point
    spec: RunSpec

    def run(self, seed: int, repetition: int) -> PlannedRun:
        """Return one repetition (from 1) under the study's seed."""
        spec = repeat(self.spec, self.point.experiment, seed, repetition)
        return PlannedRun(
            run_id=spec.run_id,
            scenario=self.name,
            experiment=self.experiment,
            factors=self.point.factors,
            repetition=repetition,
            spec=spec,
        )


def scenarios_of(
    study: Study,
    *,
    profile: str,
    stack: str,
    only: Sequence[str] = (),
    pins: Mapping[str, str],
    kernels: Mapping[str, str] = MappingProxyType({}),
) -> tuple[tuple[Scenario, ...], tuple[Excluded, ...]]:
    """Return the scenarios of a study in the manifest's order, and the points left out; arguments as in build_plan.

    Raises StudyError for unknown names, all at once.
    """
    _check_names(study, profile, stack, only)
    rule = None if profile == "paper" else getattr(study.header.profiles, profile)
    chosen = [thinned(swept, rule) for swept in study.experiments if not only or swept.id in only]
    require_distinct_names(study, chosen)
    scenarios, excluded = [], []
    named = STACKS[stack].kernel
    # A backend without named kernels has one kernel for all stacks.
    stack_pins = {**pins, "kernel": kernels.get(named, named)} if kernels else pins
    for swept in chosen:
        for point in _of_backend(study, swept, pins):
            kernel = study.kernel_of(point.experiment, stack)
            own_pins = {**pins, "kernel": kernels.get(kernel.name, kernel.name)} if kernel else stack_pins
            spec = resolve(point.experiment, study, STACKS[stack], own_pins)
            if reason := _beyond(spec, pins.get("backend")):
                excluded.append(Excluded(swept.id, point.factors, reason))
            else:
                name = scenario_slug(swept.id, point.labels)
                scenarios.append(Scenario(name, swept.id, swept.repetitions, point, spec))
    return tuple(scenarios), tuple(excluded)


def _of_backend(study: Study, swept: SweptExperiment, pins: Mapping[str, str]) -> Iterator[Point]:
    """Yield the points for the backend in the pins; a study that compares backends has points of each."""
    first, name = next(iter(study.header.backends), None), pins.get("backend", DEFAULT_BACKEND)
    for point in swept.points:
        if first is None:
            yield point
        elif point.factors[BACKEND] == first:
            yield replace(point, factors={**point.factors, BACKEND: name}, labels={**point.labels, BACKEND: name})


def _beyond(scenario: RunSpec, backend: str | None) -> str | None:
    """Return the reason why the backend leaves a scenario out; None without a backend."""
    if backend is None:
        return None
    traits = traits_of(backend)
    missing = (FEATURES if traits.clock == "real" else BEYOND_KERNELS) - traits.can
    reasons = (lacking(backend, feature, words) for feature, words in needed(scenario).items() if feature in missing)
    return next(reasons, None)


def scenario_slug(experiment: str, labels: Mapping[str, str]) -> str:
    """Return a readable name that is safe in file names: ``delay-9000.algorithm-reno.window-16mib``."""
    parts = [experiment, *(f"{name}-{_plain(text)}" for name, text in labels.items())]
    slug = ".".join(parts)
    if len(slug) <= _SLUG_LENGTH:
        return slug
    return f"{slug[:_SLUG_LENGTH]}-{hashlib.sha256(slug.encode()).hexdigest()[:8]}"


def _plain(text: str) -> str:
    """Format a value in lower case without spaces; ``bit/s`` loses its slash, and ``%`` becomes ``pct``."""
    text = text.lower().replace("bit/s", "bit").replace("%", "pct").replace(" ", "")
    return re.sub(r"[^a-z0-9.+_-]", "-", text) or "-"


def _check_names(study: Study, profile: str, stack: str, only: Sequence[str]) -> None:
    problems = []
    if profile not in PROFILES:
        problems.append(_unknown("--profile", "profile", profile, PROFILES))
    if stack not in STACKS:
        problems.append(_unknown("--stack", "stack", stack, STACKS))
    known = [swept.id for swept in study.experiments]
    for name in only:
        if name not in known:
            problems.append(_unknown("--only", "experiment", name, known))
    if problems:
        raise StudyError("the plan cannot be made", problems=tuple(problems))


def _unknown(option: str, what: str, given: str, allowed: Sequence[str] | Mapping[str, object]) -> Problem:
    message, hint = unknown(what, given, allowed)
    return Problem(option, None, "", message, hint)


def require_distinct_names(study: Study, chosen: Sequence[SweptExperiment]) -> None:
    """Raise StudyError with all scenarios that have the name of another, and so its folder."""
    seen: dict[str, Mapping[str, str]] = {}
    problems = []
    for swept in chosen:
        for point in swept.points:
            slug = scenario_slug(swept.id, point.labels)
            if slug in seen:
                points = (", ".join(map("=".join, labels.items())) for labels in (seen[slug], point.labels))
                message = f"{' and '.join(points)} are both called {slug!r}"
                hint = "values must differ in letters from a to z or in digits, not in case alone"
                problems.append(Problem(study.file, None, f"experiments.{swept.id}", message, hint))
            seen.setdefault(slug, point.labels)
    if problems:
        raise StudyError("scenarios share a name", problems=tuple(problems))


def _ordered(runs: list[PlannedRun], seed: int) -> tuple[PlannedRun, ...]:
    """Order runs by repetition, shuffled within each, so that a drift affects all scenarios equally."""
    return tuple(sorted(runs, key=lambda run: (run.repetition, digest("order", seed, run.repetition, run.scenario))))
