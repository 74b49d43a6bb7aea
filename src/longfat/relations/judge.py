# SPDX-License-Identifier: Apache-2.0
"""Holds each claim against the dataset and gives its verdict, with the numbers that led to it.

Owns how tests are decided and the file verdicts.json. The policy is docs/claims.md: limits come from the
paper, and one that lies inside a 95 % interval decides nothing. Must not know any study.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from longfat.dataset.load import load_dataset
from longfat.errors import RigError
from longfat.files import write_whole
from longfat.manifest.load import load_study
from longfat.manifest.names import shown
from longfat.relations.claims import Claim, read_claims
from longfat.relations.evaluate import Evidence, Grounds, comparisons

VERDICTS = "verdicts.json"
VerdictWord = Literal["reproduced", "not_reproduced", "inconclusive", "not_testable"]
VERDICT_WORDS: tuple[VerdictWord, ...] = ("reproduced", "not_reproduced", "inconclusive", "not_testable")


@dataclass(frozen=True)
class Verdict:
    """A claim's verdict with its evidence. ``paper`` is the stated value as text, ``where`` its place."""

    claim: str
    artifact: str | None
    also: tuple[str, ...]
    statement: str
    paper: str
    where: str
    verdict: VerdictWord
    reason: str | None
    evidence: tuple[Evidence, ...]


def judge(results: Path, study_dir: Path) -> list[Verdict]:
    """Give every claim of the study its verdict, in the order of claims.yaml, and write ``verdicts.json``.

    Raises StudyError on faulty claims, RigError when the dataset is missing or nothing can be written.
    """
    study = load_study(study_dir / "study.yaml")
    grounds = Grounds(study, load_dataset(results))
    verdicts = [decide(claim, grounds) for claim in read_claims(study_dir, study)]
    data = {"format": 1, "verdicts": [dataclasses.asdict(verdict) for verdict in verdicts]}
    path = results / VERDICTS
    try:
        write_whole(path, json.dumps(data, sort_keys=True, indent=1, ensure_ascii=True) + "\n")
    except OSError as error:
        raise RigError(f"cannot write the verdicts: {error}", where=str(path)) from error
    return verdicts


def read_verdicts(results: Path) -> list[Verdict]:
    """The verdicts as ``judge`` wrote them. Raises RigError when they are missing or damaged."""
    path = results / VERDICTS
    try:
        rows = json.loads(path.read_text(encoding="ascii"))["verdicts"]
        return TypeAdapter(list[Verdict], config=ConfigDict(extra="forbid")).validate_python(rows)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise _unreadable(path, f"{place}: {shown(first['input'])}: {first['msg'].lower()}") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unreadable(path, repr(error)) from error


def _unreadable(path: Path, reason: str) -> RigError:
    hint = "judge again with `longfat analyse STUDY`"
    return RigError(f"the verdicts cannot be read: {reason}", where=str(path), hint=hint)


def decide(claim: Claim, grounds: Grounds) -> Verdict:
    """The verdict on one claim."""
    word: VerdictWord
    reason: str | None
    if claim.not_testable is not None:
        evidence: tuple[Evidence, ...] = ()
        word, reason = "not_testable", claim.not_testable
    else:
        evidence = tuple(item for relation in claim.relations for item in comparisons(relation, grounds))
        word, reason = _combined(evidence)
    return Verdict(
        claim=claim.id,
        artifact=claim.artifact,
        also=claim.also,
        statement=claim.statement,
        paper=claim.paper,
        where=claim.where,
        verdict=word,
        reason=reason,
        evidence=evidence,
    )


def _combined(evidence: tuple[Evidence, ...]) -> tuple[VerdictWord, str | None]:
    """All comparisons must hold; one that fails decides, else one that is open leaves the claim open."""
    failed = [item for item in evidence if item.outcome == "fails"]
    if failed:
        return "not_reproduced", _first(failed)
    empty = [item for item in evidence if item.outcome == "no_data"]
    if empty:
        return "inconclusive", empty[0].reason
    open_ = [item for item in evidence if item.outcome == "undecided"]
    if open_:
        return "inconclusive", f"a limit lies inside the 95 % interval: {_first(open_)}"
    return "reproduced", None


def _first(items: list[Evidence]) -> str:
    more = f" (and {len(items) - 1} more)" if len(items) > 1 else ""
    return f"measured {_number(items[0].mean)}, allowed {items[0].limit}{more}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.5g}"
