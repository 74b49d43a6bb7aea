# SPDX-License-Identifier: Apache-2.0
"""What to run next: the repetitions by which open claims are decided most cheaply.

A pure function of the evidence: the same evidence gives the same step on every machine. Runs nothing, and knows neither
the time nor the machine.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

from longfat.evidence.costs import Costs, Targets, too_short
from longfat.evidence.ground import Ground
from longfat.evidence.looks import LOOKS, NOMINAL, confirmed, level_at, reachable
from longfat.evidence.wanted import parts_of
from longfat.relations.claims import Claim
from longfat.relations.evaluate import Evidence
from longfat.relations.gates import printed_numbers
from longfat.relations.judge import Verdict, decide

CAP = LOOKS[-1]
STEP_SECONDS = 120.0  # of CPU: as much is run at least before the evidence is looked at again
UNKNOWN_CHANCE = 0.5  # that a comparison without data is decided at the first look
LEAST_CHANCE = 0.02  # what is less likely is not worth its time

Part = tuple[Evidence, tuple[str, ...]]
"""A comparison, and the scenarios that it reads."""


@dataclass(frozen=True)
class Option:
    """Repetitions that would decide a claim with some chance; ``seconds`` of CPU for those that are not there yet."""

    claim: str
    targets: Targets
    seconds: float
    chance: float

    @property
    def worth(self) -> float:
        """Chance of a decision for a second."""
        return self.chance / max(self.seconds, 1e-3)


@dataclass(frozen=True)
class Standing:
    """Where the claims stand: ``settled`` at their look's level, ``open`` by the engine's word, or else ``unsettled``.

    ``hopeless`` are those of them that more runs of this profile cannot settle, each with the reason.
    """

    settled: tuple[str, ...]
    open: tuple[str, ...]
    unsettled: tuple[str, ...]
    hopeless: Mapping[str, str]


@dataclass(frozen=True)
class Step:
    """What to run now: targets by scenario, for which claims, and the seconds of CPU that it will take."""

    targets: Targets
    claims: tuple[str, ...]
    seconds: float


class Chooser:
    """The claims of a study on one profile's evidence."""

    def __init__(self, ground: Ground, claims: Sequence[Claim], only: Collection[str] = ()) -> None:
        self.ground, self.costs = ground, Costs(ground)
        self.papers = printed_numbers(claims, ground.planned.study)
        self.claims = [claim for claim in claims if not only or claim.id in only]

    @cached_property
    def standing(self) -> Standing:
        """Of each claim that can be tested."""
        settled: list[str] = []
        open_: list[str] = []
        unsettled: list[str] = []
        hopeless: dict[str, str] = {}
        for claim in self.claims:
            if claim.not_testable is not None:
                continue
            if self._is_settled(claim):
                settled.append(claim.id)
                continue
            (unsettled if _decided(self.verdicts[claim.id]) else open_).append(claim.id)
            if not self.options[claim.id]:
                hopeless[claim.id] = self._why(claim)
        return Standing(tuple(settled), tuple(open_), tuple(unsettled), hopeless)

    @cached_property
    def options(self) -> Mapping[str, tuple[Option, ...]]:
        """What could settle each claim that is not, the most worth first; by claim."""
        return {claim.id: tuple(self._options(claim)) for claim in self.claims}

    def step(self, seconds: float = math.inf, *, settle: bool = True) -> Step | None:
        """The next step that takes at most so many seconds of CPU; None when nothing is worth it.

        Claims that are open go before those that are only not settled, which need none unless they are to ``settle``.
        """
        for claims in (self.standing.open, self.standing.unsettled if settle else ()):
            if step := self._step(claims, min(seconds, STEP_SECONDS), seconds):
                return step
        return None

    def within(self, seconds: float) -> tuple[str, ...]:
        """The claims that so many seconds of CPU would more likely than not decide, the cheapest first."""
        found, spent = [], 0.0
        likely = [next((one for one in self.options[name] if one.chance >= 0.5), None) for name in self.standing.open]
        for option in sorted((one for one in likely if one), key=lambda one: (one.seconds, one.claim)):
            if spent + option.seconds <= seconds:
                spent += option.seconds
                found.append(option.claim)
        return tuple(found)

    def _step(self, claims: Sequence[str], enough: float, most: float) -> Step | None:
        """The best option, and further ones until that is enough seconds."""
        options = [option for name in claims for option in self.options[name]]
        targets: dict[str, int] = {}
        taken: list[str] = []
        while options:
            best = max(options, key=lambda one: (self._gain(one, options, targets), one.claim))
            merged = {name: max(targets.get(name, 0), n) for name, n in {**targets, **best.targets}.items()}
            merged |= {name: max(merged[name], n) for name, n in targets.items()}
            options = [option for option in options if option is not best]
            if self.costs.seconds(merged) > most:
                continue
            targets = merged
            taken.append(best.claim)
            if self.costs.seconds(targets) >= enough:
                break
        seconds = self.costs.seconds(targets)
        return Step(targets, tuple(dict.fromkeys(taken)), seconds) if seconds > 0 else None

    def _gain(self, option: Option, options: Sequence[Option], targets: Targets) -> float:
        """Decisions expected for a second that the option adds: its own, and those of others that it has runs for."""
        chances: dict[str, float] = {}
        for other in options:
            if all(option.targets.get(name, 0) >= n for name, n in other.targets.items()):
                chances[other.claim] = max(chances.get(other.claim, 0.0), other.chance)
        added = self.costs.seconds({name: n for name, n in option.targets.items() if n > targets.get(name, 0)})
        return sum(chances.values()) / max(added, 1e-3)

    @cached_property
    def verdicts(self) -> Mapping[str, Verdict]:
        return {claim.id: decide(claim, self.ground.grounds, self.papers) for claim in self.claims}

    def _options(self, claim: Claim) -> Iterator[Option]:
        if claim.not_testable is not None or self._is_settled(claim) or too_short(claim, self.ground):
            return
        parts = [part for part in self._parts[claim.id] if not _sure(part)]
        strict = _decided(self.verdicts[claim.id])
        failing = [(item, names) for item, names in parts if _outside(item)]
        found = []
        for look in LOOKS:
            # One part that fails is enough; while none seems to, all must hold.
            chosen = [self._likeliest(failing, look, strict)] if failing else parts
            chance = self._joint(chosen, look, strict)
            targets = {name: look for _, names in chosen for name in names if self.costs.missing(name, look)}
            if targets and chance >= LEAST_CHANCE:
                found.append(Option(claim.id, targets, self.costs.seconds(targets), chance))
        # The next look, and the one that is worth most: others are worse than one of the two.
        best = sorted(found, key=lambda option: (-option.worth, option.seconds))
        yield from best[:1]
        yield from (option for option in found[:1] if option not in best[:1])

    @cached_property
    def _parts(self) -> Mapping[str, list[Part]]:
        """The comparisons of each claim, with the scenarios that they read and that more runs could tell more of."""
        return {claim.id: self._parts_of(claim, self.verdicts[claim.id]) for claim in self.claims}

    def _is_settled(self, claim: Claim) -> bool:
        """Whether one comparison fails for sure, or all hold for sure."""
        parts = self._parts[claim.id]
        sure = [part for part in parts if _sure(part)]
        if self.verdicts[claim.id].verdict == "not_measured":
            return False
        return any(item.outcome == "fails" for item, _ in sure) or len(sure) == len(parts)

    def _parts_of(self, claim: Claim, verdict: Verdict) -> list[Part]:
        grounds = self.ground.grounds
        read = [
            selections
            for relation in claim.relations
            for _, selections in parts_of(relation, grounds.study, grounds.values_of)
        ]
        if len(read) != len(verdict.evidence):
            read = [tuple(one for selections in read for one in selections)] * len(verdict.evidence)
        found = []
        for item, selections in zip(verdict.evidence, read, strict=True):
            names = {run.scenario for one in selections for run in one.chosen(grounds.dataset)}
            found.append((item, tuple(sorted(name for name in names if not self._is_constant(name)))))
        return found

    def _likeliest(self, parts: Sequence[Part], look: int, strict: bool) -> Part:
        """The part with the best chance, of several the one with the fewest scenarios."""
        return max(parts, key=lambda part: (self._chance(part[0], part[1], look, strict), -len(part[1])))

    def _joint(self, parts: Sequence[Part], look: int, strict: bool) -> float:
        """That so many repetitions decide a claim whose parts these are.

        Parts without data count once: their first data decide the claim if all of them hold and if one of them fails.
        """
        chances = [(self._chance(item, names, look, strict), _size(item)) for item, names in parts]
        without = [chance for chance, size in chances if not size]
        return math.prod(chance for chance, size in chances if size) * min(without, default=1.0)

    def _chance(self, item: Evidence, names: Sequence[str], look: int, strict: bool) -> float:
        """That a comparison is decided by so many repetitions of its scenarios, if ``strict``, at its look's level.

        It is taken to stay where it is, with an error that shrinks with the root of the repetitions.
        """
        if not any(self.costs.missing(name, look) for name in names):
            return 0.0
        chances = [one for one in (item.p_holds, item.p_fails) if one is not None]
        size = _size(item)
        if not size:
            return UNKNOWN_CHANCE if any(self.costs.missing(name, LOOKS[0]) for name in names) else 0.0
        level = level_at(look) if strict else NOMINAL
        if level is None or (strict and not reachable(level, look - 1)):
            return 0.0
        normal = NormalDist()
        seen = -normal.inv_cdf(min(max(min(chances), 1e-12), 0.5))
        return normal.cdf(seen * math.sqrt(look / size) + normal.inv_cdf(level))

    def _why(self, claim: Claim) -> str:
        names = {name for _, names in self._parts[claim.id] for name in names}
        if too_short(claim, self.ground):
            return "the runs of this profile are too short for it"
        if not self._parts[claim.id]:
            return str(self.verdicts[claim.id].reason)
        if not names:
            return "no run of this profile tells more of it"
        if all(not self.costs.missing(name, CAP) for name in names):
            return f"open at the cap of {CAP} repetitions"
        return f"more than {CAP} repetitions would be needed"

    def _is_constant(self, name: str) -> bool:
        """Whether repetitions of a scenario are all the same to the byte."""
        rows = self.ground.rows.get(name, ())
        return len(rows) >= LOOKS[0] and len({row.measured for row in rows}) == 1


def _size(item: Evidence) -> int:
    """The repetitions that speak for or against a comparison; 0 where it has no data yet."""
    return 0 if item.p_holds is None and item.p_fails is None else item.n or 0


def _sure(part: Part) -> bool:
    """Whether a comparison is decided at its look's level; what is always the same to the byte is decided at once."""
    item, names = part
    return item.outcome in ("holds", "fails") and (not names or confirmed(item))


def _decided(verdict: Verdict) -> bool:
    """Whether the engine has a word on it."""
    return verdict.verdict not in ("inconclusive", "not_measured")


def _outside(item: Evidence) -> bool:
    """Whether it would rather fail than hold."""
    return item.p_fails is not None and item.p_holds is not None and item.p_fails < item.p_holds
