# SPDX-License-Identifier: Apache-2.0
"""The verdict on each claim from the dataset, by relations that were fixed before the runs.

Owns the choice of the verdict. Must not contain a number of any study.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from longfat.dataset.load import load_dataset
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Selection, metric_of_run
from longfat.plan.lockfile import left_out_by_backend
from longfat.relations.claims import Claim, Needs, Retest
from longfat.relations.counting import Counted, category_of
from longfat.relations.evaluate import Compared, Evidence, Grounds, Rule, comparisons, decided
from longfat.relations.firsts import FIRST, Time, changes, decisive, digest, keep_first, recorded_before
from longfat.relations.outcomes import Why, Word, phrase
from longfat.relations.paper import PaperNumbers, printed_numbers
from longfat.study.schema.names import shown
from longfat.study.study import Study
from longfat.system.checksums import checksums_of, verify_checksums, write_checksums
from longfat.system.errors import RigError
from longfat.system.files import write_whole

VERDICTS = "verdicts.json"
INSTEAD = "instead: "  # prefix of comparisons of a known deviation


@dataclass(frozen=True)
class Verdict:
    """A claim's verdict with its evidence. ``paper`` is the stated value as text, ``where`` its place.

    ``category`` is the category of its count, ``inconsistent`` the place where the paper contradicts its statement,
    ``group`` the claims that exclude it, ``same_as`` the claim with the same test. ``deviation`` is the reason for a
    known deviation that the runs show, ``why`` the reason behind the verdict's word.
    """

    claim: str
    artifact: str | None
    also: tuple[str, ...]
    statement: str
    paper: str
    where: str
    verdict: Word
    reason: str | None
    evidence: tuple[Evidence, ...]
    category: str = "measured"
    inconsistent: str | None = None
    group: tuple[str, ...] = ()
    same_as: str | None = None
    deviation: str | None = None
    why: Why | None = None

    @property
    def words(self) -> str:
        """The verdict with the reason behind it."""
        return phrase(self.verdict, self.why)

    @property
    def brief(self) -> str:
        """The reason behind the verdict's word, with the number of repetitions needed; "" without any."""
        needed = _needed(self.evidence) if self.why == "too few runs" else None
        return f"{self.why}, {needed} needed" if needed else self.why or ""

    @property
    def explained(self) -> str:
        """The reason behind the verdict's word, with the number of repetitions needed or the difference in scenario."""
        return f"{self.why}: {self.reason}" if self.why == "scenario differs" else self.brief

    @property
    def counted(self) -> Counted:
        """The parts of the verdict that counting needs."""
        return Counted(self.claim, self.verdict, self.category, self.same_as, self.group)

    @property
    def deciding(self) -> Evidence | None:
        """The comparison that decides the claim; comparisons of a known deviation do not count."""
        return _deciding([one for one in self.evidence if not one.what.startswith(INSTEAD)])


@dataclass(frozen=True)
class Origin:
    """The origin of verdicts: their claims, compared with the first claims of the results folder."""

    claims_sha256: str
    first_sha256: str
    first_time: Time
    before_runs: bool
    changes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """A sentence about the time when the limits were fixed."""
        when = "before the first run" if self.before_runs else "when they were first judged, after the runs"
        if self.changes:
            return f"The claims were recorded {when} ({self.first_time}), and have changed since"
        return f"The claims and their limits are those that were recorded {when}"


def judge(results: Path, study: Study, claims: Sequence[Claim], files: Mapping[str, str | None]) -> list[Verdict]:
    """Return the verdict on every claim, in the order of the claims, and write ``verdicts.json``.

    Its checksums cover the dataset, and the ``files`` of the study by name, as they were read. Raises RigError if the
    dataset is missing.
    """
    grounds = Grounds(study, load_dataset(results), left_out_by_backend(results / "lock.json"))
    papers = printed_numbers(claims, study)
    verdicts = [decide(claim, grounds, papers) for claim in claims]
    first = keep_first(results, claims, before_runs=False)
    changed = tuple(changes(first, claims))
    before = recorded_before(first, results)
    origin = Origin(digest(decisive(claims)), first.sha256, first.time, before, changed)
    data = {
        "format": 3,
        "origin": dataclasses.asdict(origin),
        "verdicts": [dataclasses.asdict(verdict) for verdict in verdicts],
    }
    path = results / VERDICTS
    write_whole(path, json.dumps(data, sort_keys=True, indent=1, ensure_ascii=True) + "\n")
    made_of = [results / FIRST, checksums_of(results, "dataset")]
    write_checksums(results, "verdicts", [path, *made_of], files)
    return verdicts


def read_verdicts(results: Path, study_dir: Path | None = None) -> list[Verdict]:
    """Read the verdicts that ``judge`` wrote; with ``study_dir`` they must belong to its present manifest and claims.

    Raises RigError if they are missing or damaged, RecordError if they do not belong to the dataset.
    """
    return _read(results, study_dir)[0]


def read_origin(results: Path) -> Origin:
    """Read the origin of the verdicts. Raises errors like ``read_verdicts``."""
    return _read(results)[1]


def _read(results: Path, study_dir: Path | None = None) -> tuple[list[Verdict], Origin]:
    path, closed = results / VERDICTS, ConfigDict(extra="forbid")
    try:
        data = json.loads(path.read_text(encoding="ascii"))
        verdicts = TypeAdapter(list[Verdict], config=closed).validate_python(data["verdicts"])
        (origin,) = TypeAdapter(list[Origin], config=closed).validate_python([data["origin"]])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise _unreadable(path, f"{place}: {shown(first['input'])}: {first['msg'].lower()}") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unreadable(path, repr(error)) from error
    verify_checksums(results, "verdicts", study_dir)
    return verdicts, origin


def _unreadable(path: Path, reason: str) -> RigError:
    hint = "judge again with `./just report STUDY`"
    return RigError(f"the verdicts cannot be read: {reason}", where=str(path), hint=hint)


def decide(claim: Claim, grounds: Grounds, papers: Mapping[str, PaperNumbers] | None = None) -> Verdict:
    """Return the verdict on one claim; ``papers`` has the paper's own numbers by claim."""
    word: Word
    why: Why | None = None
    reason: str | None
    evidence: tuple[Evidence, ...] = ()
    if claim.not_testable is not None:
        word, reason = "not testable", claim.not_testable
    elif missing := unmet(claim, grounds):
        word, why, reason = "undecided", "runs missing", missing
    else:
        evidence = decided(_parts(claim, grounds, (papers or {}).get(claim.id)))
        word, why, reason = _combined(evidence)
        if word == "not reproduced" and claim.scenario_differs:
            why, reason = "scenario differs", claim.scenario_differs
        elif claim.scenario_differs and word in ("reproduced", "compatible"):
            word, why, reason = "not testable", "scenario differs", claim.scenario_differs
    if why == "runs missing" and (lacking := _left_out(claim, grounds)):
        word, why, reason = "not testable", None, lacking
    instead = decided(one for relation in claim.instead for one in comparisons(relation, grounds, _rule(claim)))
    deviation, reason = _deviation(claim, word, reason, instead)
    marked = claim.inconsistent
    return Verdict(
        claim=claim.id,
        artifact=claim.artifact,
        also=claim.also,
        statement=claim.statement,
        paper=claim.paper,
        where=claim.where,
        verdict=word,
        reason=reason,
        evidence=(*evidence, *(dataclasses.replace(item, what=f"{INSTEAD}{item.what}") for item in instead)),
        category=category_of(claim),
        inconsistent=f"{claim.where} against {marked.where}: {marked.reason}" if marked else None,
        group=claim.contradicts,
        same_as=claim.same_as,
        deviation=deviation,
        why=why,
    )


def _left_out(claim: Claim, grounds: Grounds) -> str | None:
    """Return the reason why the backend has no run for a part of the claim; None if it executes all of them."""
    if not grounds.left_out:
        return None
    chosen = (one for of in claim.relations for one in of.selections(grounds.study, grounds.values_of))
    empty = (one.experiment for one in chosen if not one.chosen(grounds.dataset))
    return next((grounds.left_out[name] for name in empty if name in grounds.left_out), None)


def _deviation(
    claim: Claim, word: Word, reason: str | None, instead: tuple[Evidence, ...]
) -> tuple[str | None, str | None]:
    """Return the deviation if the runs show it, and the verdict's reason, which mentions the deviation."""
    if claim.deviation is None or word in ("undecided", "not testable"):
        return None, reason
    if word != "not reproduced":
        return None, f"the stated deviation was not found: {claim.deviation}"
    found = _combined(instead)[0]
    if found == "undecided":
        return None, f"{reason}, and its stated deviation is undecided: {claim.deviation}"
    if found == "not reproduced":
        return None, f"{reason}, and its stated deviation does not hold either: {claim.deviation}"
    return claim.deviation, f"deviates as stated: {claim.deviation}"


def _parts(claim: Claim, grounds: Grounds, paper: PaperNumbers | None) -> Iterator[Compared]:
    for relation, retest in zip(claim.relations, claim.retests or [None] * len(claim.relations), strict=True):
        yield from comparisons(relation, grounds, _rule(claim, retest, paper))


def _rule(claim: Claim, retest: Retest | None = None, paper: PaperNumbers | None = None) -> Rule:
    part = retest.deviation / 100 if retest and retest.of == "number" else 0.0
    unit = retest.deviation if retest and retest.of == "unit" else 0.0
    return Rule(claim.declared == "law", paper, part, unit)


def _combined(evidence: Sequence[Evidence]) -> tuple[Word, Why | None, str | None]:
    """Return verdict, reason and text of comparisons that must all be reproduced."""
    one = _deciding(evidence)
    assert one is not None
    if one.outcome in ("reproduced", "compatible"):
        word: Word = "compatible" if any(item.outcome == "compatible" for item in evidence) else "reproduced"
        return word, None, None
    same = sum((item.outcome, item.why) == (one.outcome, one.why) for item in evidence)
    more = f" (and {same - 1} more)" if same > 1 else ""
    text = f"{one.what}: {one.reason}" if one.mean is None else f"measured {_number(one.mean)}, allowed {one.limit}"
    needed = _needed(evidence) if one.why == "too few runs" else None
    return one.outcome, one.why, f"{text}{more}{f'; {needed} repetitions needed' if needed else ''}"


def _needed(evidence: Sequence[Evidence]) -> str | None:
    """Return the number of repetitions that the undecided comparisons need, in words; None if they have as many."""
    numbers = [one.needed for one in evidence if one.needed and one.needed > (one.n or 0)]
    return f"about {float(f'{max(numbers):.2g}'):,.0f}" if numbers else None


def _deciding(evidence: Sequence[Evidence]) -> Evidence | None:
    """Return the comparison that decides a claim.

    A comparison that is not reproduced decides, of several the most certain; else the first one without data, else the
    first undecided one, else the one closest to its limit.
    """

    def rank(one: Evidence) -> tuple[int, float]:
        if one.outcome == "not reproduced":
            return 0, one.p_against or 0.0
        if one.outcome == "undecided":
            return 1 if one.why == "runs missing" else 2, 0.0
        return 3, -(one.p_inside or 0.0)

    return min(evidence, key=rank, default=None)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.5g}"


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
