# SPDX-License-Identifier: Apache-2.0
"""Criteria of a study's claims at the time when rows became evidence, and claims with a later criterion.

Owns ``experiments/STUDY/criteria.jsonl``, an append-only file whose lines git merges by union, in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longfat.evidence.rows import read_line
from longfat.evidence.store import Rows
from longfat.relations.claims import Claim
from longfat.relations.firsts import Criterion, decisive, differences, digest
from longfat.spec.plain import canonical_json
from longfat.study.study import Study
from longfat.system.errors import Problem, StudyError
from longfat.system.files import read_plain, write_whole

CRITERIA = "criteria.jsonl"
MOST_BYTES = 64 << 20
YOUNGER = "Criteria that differ from those recorded with the first runs, and are not in `changes` of claims.yaml"


@dataclass(frozen=True)
class Recorded:
    """The criterion of a claim on a day (ISO 8601), and the number of its rows that were evidence before."""

    claim: str
    day: str
    rows: int
    criterion: Criterion

    @property
    def sha256(self) -> str:
        """The digest of the criterion."""
        return digest(self.criterion)

    def line(self) -> str:
        """Return the record as canonical JSON."""
        return canonical_json({**vars(self), "sha256": self.sha256})

    @classmethod
    def read(cls, line: str) -> Recorded:
        """Parse a line. Raises ValueError, KeyError or TypeError."""
        data = read_line(line)
        if type(data["rows"]) is not int or data["rows"] < 0:
            raise ValueError(f"rows is {data['rows']!r}, and not a number of rows")
        one = cls(str(data["claim"]), str(data["day"]), data["rows"], dict(data["criterion"]))
        if data["sha256"] != one.sha256:
            raise ValueError("sha256 is not the digest of the criterion")
        return one


Records = Mapping[str, Sequence[Recorded]]
"""The records by claim, the earliest first: the one with the fewest rows."""


def read_criteria(folder: Path) -> Records:
    """Read the records of a study's folder. Raises StudyError with every damaged line."""
    path = folder / CRITERIA
    problems, found = [], []
    try:
        lines = read_plain(path, folder, MOST_BYTES).decode("ascii").splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"the criteria cannot be read: {error}", where=str(path)) from error
    for number, line in enumerate(lines, start=1):
        try:
            found.append(Recorded.read(line))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            problems.append(Problem(str(path), number, "", f"the line cannot be read: {error!r}"))
    if problems:
        hint = "git has the former file"
        raise StudyError("criteria of claims cannot be used as they are", hint=hint, problems=tuple(problems))
    return _by_claim(found)


def write_criteria(folder: Path, records: Records) -> None:
    """Write the records in canonical order, if the file has others."""
    path = folder / CRITERIA
    text = "".join(f"{one.line()}\n" for name in sorted(records) for one in records[name])
    if text and (not path.exists() or path.read_text(encoding="ascii") != text):
        write_whole(path, text)


def with_present(records: Records, claims: Sequence[Claim], study: Study, rows: Rows, day: str) -> Records:
    """Return the records plus the present criterion of each claim; ``rows`` is the evidence before the addition."""
    counts = count_rows(claims, study, rows)
    new = [
        Recorded(name, day, counts[name], criterion)
        for name, criterion in decisive(claims).items()
        if digest(criterion) not in {one.sha256 for one in records.get(name, ())}
    ]
    return _by_claim((*new, *(one for of in records.values() for one in of)))


def merge_criteria(one: Records, other: Records) -> Records:
    """Merge records of two folders."""
    return _by_claim(record for records in (one, other) for of in records.values() for record in of)


def count_rows(claims: Iterable[Claim], study: Study, rows: Rows) -> Mapping[str, int]:
    """Return, by claim, the number of rows of its experiments, in all baselines, stacks and profiles."""
    counts: Counter[str] = Counter()
    for place, of in rows.items():
        counts[place.experiment] += sum(row.withdrawn is None for row in of.values())
    return {claim.id: sum(counts[name] for name in _experiments(claim, study)) for claim in claims}


def younger(claims: Sequence[Claim], study: Study, rows: Rows, records: Records) -> Iterator[str]:
    """Yield a line for each difference of a claim's criterion from its earliest record that `changes` lacks.

    A claim without rows is not compared. Of several earliest records a different one counts. Each change needs its own
    entry in ``changes``, dated on or after the day of the earliest record.
    """
    counts, now = count_rows(claims, study, rows), decisive(claims)
    for claim in claims:
        known = records.get(claim.id, ())
        if not known and counts[claim.id]:
            yield f"{claim.id}: no criterion was recorded before {counts[claim.id]} runs of it were evidence"
        if not known or not counts[claim.id]:
            continue
        present = digest(now[claim.id])
        first = max((one for one in known if one.rows == known[0].rows), key=lambda one: one.sha256 != present)
        different = {one.sha256 for one in known} | {present}
        listed = sum(change.date >= first.day for change in claim.changes)
        if len(different) - 1 > listed:
            yield from differences(claim.id, first.criterion, now[claim.id])


def summary(claims: Sequence[Claim], study: Study, rows: Rows, records: Records) -> str:
    """Return a sentence about the days on which the criteria of claims with rows were first recorded."""
    names = [name for name, count in count_rows(claims, study, rows).items() if count]
    firsts = [records[name][0] for name in names if name in records]
    if not firsts:
        return "No criterion of a claim with runs is recorded."
    days = sorted({one.day for one in firsts})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    late = sum(one.rows > 0 for one in firsts)
    return (
        f"Criteria of {len(firsts)} of {len(names)} claims with runs were recorded on {when}:"
        f" {len(firsts) - late} before the first run about them was evidence, {late} later."
    )


def _by_claim(records: Iterable[Recorded]) -> Records:
    """Return records by claim, the earliest one of equal criteria."""
    found: dict[str, dict[str, Recorded]] = {}
    for one in sorted(records, key=lambda one: (one.rows, one.day, one.sha256)):
        found.setdefault(one.claim, {}).setdefault(one.sha256, one)
    return {name: tuple(of.values()) for name, of in found.items()}


def _experiments(claim: Claim, study: Study) -> Iterable[str]:
    return dict.fromkeys(name for relation in claim.relations for name in relation.experiments(study))
