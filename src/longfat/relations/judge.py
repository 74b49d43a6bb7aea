# SPDX-License-Identifier: Apache-2.0
"""The judge: a verdict on each claim from the dataset, by relations that were fixed before the runs.

Owns the choice of the verdict. Contains no number of any study.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from longfat.dataset.load import load_dataset
from longfat.plan.lockfile import left_out_by_backend
from longfat.relations.claims import Claim, Retest
from longfat.relations.counting import Counted, VerdictWord, category_of
from longfat.relations.evaluate import Evidence, Grounds, Rule, comparisons
from longfat.relations.firsts import FIRST, changes, decisive, digest, keep_first
from longfat.relations.limits import Outcome, fallen
from longfat.relations.needs import unmet
from longfat.relations.paper import PaperNumbers, printed_numbers
from longfat.study.schema.names import shown
from longfat.study.study import Study
from longfat.system.checksums import checksums_of, verify_checksums, write_checksums
from longfat.system.errors import RigError
from longfat.system.files import write_whole

VERDICTS = "verdicts.json"
INSTEAD = "instead: "  # prefix of comparisons of a known deviation
_MOST_TELLING: Sequence[Outcome] = ("fails", "undecided", "no_data", "holds")


@dataclass(frozen=True)
class Verdict:
    """A claim's verdict with its evidence. ``paper`` is the stated value as text, ``where`` its place.

    ``category`` is the category of its count, ``inconsistent`` the place where the paper contradicts its statement,
    ``group`` the claims that exclude it, ``same_as`` the claim with the same test. ``deviation`` is the reason for a
    known deviation that the runs show.
    """

    claim: str
    artifact: str | None
    also: tuple[str, ...]
    statement: str
    paper: str
    where: str
    verdict: VerdictWord
    reason: str | None
    evidence: tuple[Evidence, ...]
    category: str = "measured"
    inconsistent: str | None = None
    group: tuple[str, ...] = ()
    same_as: str | None = None
    deviation: str | None = None

    @property
    def counted(self) -> Counted:
        """The verdict for counting."""
        return Counted(self.claim, self.verdict, self.category, self.same_as, self.group)

    @property
    def deciding(self) -> Evidence | None:
        """The comparison that represents the claim: one that fails, else is undecided, has no data, or holds.

        Comparisons of a known deviation do not count.
        """
        own = [one for one in self.evidence if not one.what.startswith(INSTEAD)]
        return min(own, key=lambda one: _MOST_TELLING.index(one.outcome), default=None)


@dataclass(frozen=True)
class Origin:
    """The claims behind verdicts, compared with the first claims of the results folder."""

    claims_sha256: str
    first_sha256: str
    first_time: str
    before_runs: bool
    changes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """A sentence about the time when the limits were fixed."""
        when = "before its first run" if self.before_runs else "when it was first judged, after its runs"
        if self.changes:
            return f"The claims were recorded {when} ({self.first_time}), and have changed since"
        return f"The claims and their limits are those that were recorded {when}"


def judge(results: Path, study: Study, claims: Sequence[Claim], files: Iterable[Path]) -> list[Verdict]:
    """Return the verdict on every claim, in the order of the claims, and write ``verdicts.json``.

    Its checksums include the dataset and the ``files`` of the study. Raises RigError if the dataset is missing or
    nothing can be written.
    """
    grounds = Grounds(study, load_dataset(results), left_out_by_backend(results / "lock.json"))
    papers = printed_numbers(claims, study)
    verdicts = [decide(claim, grounds, papers) for claim in claims]
    first = keep_first(results, claims, before_runs=False)
    changed = tuple(changes(first, claims))
    origin = Origin(digest(decisive(claims)), first.sha256, first.time, first.before_runs, changed)
    data = {
        "format": 2,
        "origin": dataclasses.asdict(origin),
        "verdicts": [dataclasses.asdict(verdict) for verdict in verdicts],
    }
    path = results / VERDICTS
    try:
        write_whole(path, json.dumps(data, sort_keys=True, indent=1, ensure_ascii=True) + "\n")
    except OSError as error:
        raise RigError(f"cannot write the verdicts: {error}", where=str(path)) from error
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
    hint = "judge again with `longfat report STUDY`"
    return RigError(f"the verdicts cannot be read: {reason}", where=str(path), hint=hint)


def decide(claim: Claim, grounds: Grounds, papers: Mapping[str, PaperNumbers] | None = None) -> Verdict:
    """Return the verdict on one claim; ``papers`` has the paper's own numbers by claim."""
    word: VerdictWord
    reason: str | None
    evidence: tuple[Evidence, ...] = ()
    if claim.not_testable is not None:
        word, reason = "not_testable", claim.not_testable
    elif missing := unmet(claim, grounds):
        word, reason = "not_measured", missing
    else:
        evidence = _evidence(claim, grounds, (papers or {}).get(claim.id))
        word, reason = _combined(evidence)
    if word == "not_measured" and (lacking := _left_out(claim, grounds)):
        word, reason = "not_testable", lacking
    instead = tuple(item for relation in claim.instead for item in comparisons(relation, grounds, _rule(claim)))
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
    )


def _left_out(claim: Claim, grounds: Grounds) -> str | None:
    """Return the reason why the backend has no run for a part of the claim; None if it executes all of them."""
    if not grounds.left_out:
        return None
    chosen = (one for of in claim.relations for one in of.selections(grounds.study, grounds.values_of))
    empty = (one.experiment for one in chosen if not one.chosen(grounds.dataset))
    return next((grounds.left_out[name] for name in empty if name in grounds.left_out), None)


def _deviation(
    claim: Claim, word: VerdictWord, reason: str | None, instead: tuple[Evidence, ...]
) -> tuple[str | None, str | None]:
    """Return the deviation if the runs show it, and the verdict's reason with the result of the deviation."""
    if claim.deviation is None or word in ("inconclusive", "not_measured", "not_testable"):
        return None, reason
    if word != "not_reproduced":
        return None, f"the stated deviation was not found: {claim.deviation}"
    if _combined(instead)[0] != "reproduced":
        return None, f"{reason}, and its stated deviation does not hold either: {claim.deviation}"
    return claim.deviation, f"deviates as stated: {claim.deviation}"


def _evidence(claim: Claim, grounds: Grounds, paper: PaperNumbers | None) -> tuple[Evidence, ...]:
    """Return all comparisons; a failing one counts only if Holm's procedure confirms it."""
    found = [
        item
        for relation, retest in zip(claim.relations, claim.retests or [None] * len(claim.relations), strict=True)
        for item in comparisons(relation, grounds, _rule(claim, retest, paper))
    ]
    failing = fallen([1.0 if item.p_fails is None else item.p_fails for item in found])
    return tuple(
        dataclasses.replace(item, outcome="holds" if item.p_holds == 0.0 and item.agreement else "undecided")
        if item.outcome == "fails" and place not in failing
        else item
        for place, item in enumerate(found)
    )


def _rule(claim: Claim, retest: Retest | None = None, paper: PaperNumbers | None = None) -> Rule:
    part = retest.deviation / 100 if retest and retest.of == "number" else 0.0
    unit = retest.deviation if retest and retest.of == "unit" else 0.0
    return Rule(claim.declared == "law", paper, part, unit)


def _combined(evidence: Sequence[Evidence]) -> tuple[VerdictWord, str | None]:
    """Combine comparisons, which must all hold: a failed one decides, else one without data, else an undecided one."""
    failed = [item for item in evidence if item.outcome == "fails"]
    if failed:
        return "not_reproduced", _first(failed)
    empty = [item for item in evidence if item.outcome == "no_data"]
    if empty:
        more = f" (and {len(empty) - 1} more)" if len(empty) > 1 else ""
        return "not_measured", f"{empty[0].what}: {empty[0].reason}{more}"
    open_ = [item for item in evidence if item.outcome == "undecided"]
    if open_:
        return "inconclusive", _open(open_)
    return "agrees" if any(item.agreement for item in evidence) else "reproduced", None


def _first(items: Sequence[Evidence]) -> str:
    more = f" (and {len(items) - 1} more)" if len(items) > 1 else ""
    effect = "no effect: " if items[0].no_effect else ""
    return f"{effect}measured {_number(items[0].mean)}, allowed {items[0].limit}{more}"


def _open(items: Sequence[Evidence]) -> str:
    unknown = [item for item in items if item.mean is None]
    if unknown:
        return f"{unknown[0].what}: {unknown[0].reason}"
    return f"open: {_first(items)}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.5g}"
