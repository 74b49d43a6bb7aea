# SPDX-License-Identifier: Apache-2.0
"""Baselines: sets of kernel, image and guest code with the same behaviour.

Owns ``kernels/epochs/*.jsonl``. A baseline is defined by the measurements of the kernel regression check when it began;
a combination of kernel, image and code belongs to it if the check measures the same. Runs nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from longfat.evidence.rows import read_line
from longfat.spec.plain import canonical_json
from longfat.system.errors import Problem, StudyError
from longfat.system.files import read_plain, write_whole

FOLDER = Path("kernels") / "epochs"
"""The folder of the baselines, below the repository's root."""

FORMAT = 1
MOST_BYTES = 16 << 20
SUFFIX = ".jsonl"

Digests = Mapping[str, str]
"""The digests of the measurements of the kernel regression check, by run; "" for a failed run."""


@dataclass(frozen=True)
class Verdict:
    """The number of compared runs, and the names of those that differ from the baseline."""

    count: int
    differing: tuple[str, ...]

    def __str__(self) -> str:
        equal = f"{self.count - len(self.differing)} of {self.count} runs measure the same"
        return f"{equal}; these differ: {', '.join(self.differing)}" if self.differing else equal


@dataclass(frozen=True)
class Combination:
    """The pins of a run: everything except its spec that can change its outcome."""

    backend: str
    kernel: str
    image: str
    code: str

    @classmethod
    def of(cls, pins: Mapping[str, str]) -> Combination:
        """Return the combination with these pins."""
        return cls(pins["backend"], pins["kernel"], pins["image"], pins["code"])

    @property
    def key(self) -> str:
        """The key in rows: 12 hexadecimal digits."""
        return hashlib.sha256(canonical_json(asdict(self)).encode()).hexdigest()[:12]

    def text(self) -> str:
        """Return a description for people."""
        return f"backend {self.backend}, kernel {self.kernel[:12]}, image {self.image[:12]}, code {self.code[:12]}"


@dataclass(frozen=True)
class Member:
    """A combination in a baseline, with date and reason: it began the baseline, or the check gave equal digests."""

    combination: Combination
    date: str
    how: str


@dataclass(frozen=True)
class Baseline:
    """Combinations with the same behaviour: ``members`` by key, and ``canaries``, the digests of the check by run."""

    name: str
    canaries: Digests
    members: Mapping[str, Member]

    def compare(self, found: Digests) -> Verdict:
        """Compare the digests of a check with the baseline, over the common runs, of which there must be one."""
        names = sorted({*found} & {*self.canaries})
        if not names:
            return Verdict(0, ("no run of this version's check is in the baseline",))
        return Verdict(len(names), tuple(name for name in names if found[name] != self.canaries[name]))

    def with_members(self, combinations: Iterable[Combination], date: str, how: str) -> Baseline:
        """Return the baseline with more combinations; known members stay unchanged."""
        new = {one.key: Member(one, date, how) for one in combinations}
        return Baseline(self.name, self.canaries, {**new, **self.members})

    def text(self) -> str:
        """Return the text of its file: a head, then the members by date and key."""
        head = {"canaries": dict(self.canaries), "epoch": self.name, "format": FORMAT}
        ordered = sorted(self.members.values(), key=lambda member: (member.date, member.combination.key))
        lines = [{**asdict(member.combination), "date": member.date, "how": member.how} for member in ordered]
        return "".join(canonical_json(line) + "\n" for line in (head, *lines))


def begin(combinations: Iterable[Combination], canaries: Digests, when: str) -> Baseline:
    """Return a new baseline, named by its start (ISO 8601, with hour and minute) and the digests of the check.

    Each run of the check has the kernel of its stack, so ``combinations`` has one for each of these kernels. The order
    of names is the order of time, except within a minute.
    """
    name = f"{when}-{_digits(canaries)}"
    return Baseline(name, dict(canaries), {}).with_members(combinations, when[:10], "began")


def _digits(canaries: Digests) -> str:
    return hashlib.sha256(canonical_json(dict(canaries)).encode()).hexdigest()[:6]


def read_baselines(folder: Path) -> list[Baseline]:
    """Read all baselines, the oldest first. Raises StudyError with all problems."""
    problems: list[Problem] = []
    baselines = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            baselines.append(_read(path))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            problems.append(Problem(str(path), None, "", f"the baseline cannot be read: {error}"))
    if problems:
        hint = "restore the file from git"
        raise StudyError("baselines of evidence are damaged", hint=hint, problems=tuple(problems))
    return baselines


def baseline_of(combination: Combination, baselines: Iterable[Baseline]) -> Baseline | None:
    """Return the newest baseline with the combination, None without any."""
    known = [baseline for baseline in baselines if combination.key in baseline.members]
    return known[-1] if known else None


def write_baseline(baseline: Baseline, folder: Path) -> Path:
    """Write a baseline and return its file."""
    path = folder / f"{baseline.name}{SUFFIX}"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, baseline.text())
    return path


def merge(one: Baseline, other: Baseline) -> Baseline:
    """Return a baseline with the members of both. Raises StudyError when they are not the same baseline."""
    if (one.name, one.canaries) != (other.name, other.canaries):
        raise StudyError(f"two baselines have the name {one.name!r} and different digests")
    return Baseline(one.name, one.canaries, _members((*one.members.values(), *other.members.values())))


def _read(path: Path) -> Baseline:
    """Read a file, whose lines may be in any order after a merge. Raises ValueError, KeyError or TypeError."""
    heads, members = [], []
    for line in dict.fromkeys(read_plain(path, path.parent, MOST_BYTES).decode("ascii").splitlines()):
        data = read_line(line)
        if "epoch" not in data:
            members.append(Member(Combination.of(data), str(data["date"]), str(data["how"])))
        elif data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r}, and this version reads {FORMAT}")
        else:
            heads.append(Baseline(data["epoch"], dict(data["canaries"]), {}))
    if len(heads) != 1 or heads[0].name != path.name.removesuffix(SUFFIX):
        raise ValueError("the file must have one head, and the baseline's name must be the name of the file")
    if heads[0].name.rpartition("-")[2] != (digits := _digits(heads[0].canaries)):
        raise ValueError(f"the name does not end in the digits of its checks, {digits}")
    return Baseline(heads[0].name, heads[0].canaries, _members(members))


def _members(members: Iterable[Member]) -> dict[str, Member]:
    """Return members by key, the earlier one of duplicates."""
    ordered = sorted(members, key=lambda member: (member.date, member.how))
    return {member.combination.key: member for member in reversed(ordered)}
