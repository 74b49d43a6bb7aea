# SPDX-License-Identifier: Apache-2.0
"""Epochs: which combinations of kernel, image and laboratory code are known to behave the same.

Owns ``kernels/epochs/*.jsonl``. An epoch is what its canaries measured when it began; a combination belongs to it whose
canaries measure the same. Runs nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from longfat.errors import Problem, RigError, StudyError
from longfat.files import write_whole
from longfat.kernel_check import Digests, Verdict
from longfat.plain import canonical_json

FOLDER = Path("kernels") / "epochs"
"""Where the epochs are, under the repository's root."""

FORMAT = 1
SUFFIX = ".jsonl"


@dataclass(frozen=True)
class Combination:
    """What takes part in a run besides its spec: the pins, by name."""

    backend: str
    kernel: str
    image: str
    code: str

    @classmethod
    def of(cls, pins: Mapping[str, str]) -> Combination:
        """The combination that pins name."""
        return cls(pins["backend"], pins["kernel"], pins["image"], pins["code"])

    @property
    def key(self) -> str:
        """What rows call it: 12 hexadecimal digits."""
        return hashlib.sha256(canonical_json(asdict(self)).encode()).hexdigest()[:12]

    def text(self) -> str:
        """For people."""
        return f"backend {self.backend}, kernel {self.kernel[:12]}, image {self.image[:12]}, code {self.code[:12]}"


@dataclass(frozen=True)
class Member:
    """A combination of an epoch, since when, and how that is known: it began it, or its canaries behave alike."""

    combination: Combination
    date: str
    how: str


@dataclass(frozen=True)
class Epoch:
    """What behaves the same. ``canaries`` are the digests of what they measure; ``members`` stand by their keys."""

    name: str
    canaries: Digests
    members: Mapping[str, Member]

    def compare(self, found: Digests) -> Verdict:
        """Hold what canaries measured against the epoch; one that only one side has tells nothing, but none does."""
        names = sorted({*found} & {*self.canaries})
        if not names:
            return Verdict(0, ("no canary of this version is among the epoch's",))
        return Verdict(len(names), tuple(name for name in names if found[name] != self.canaries[name]))

    def with_members(self, combinations: Iterable[Combination], date: str, how: str) -> Epoch:
        """Return the epoch with further combinations; a known one stays as it is."""
        new = {one.key: Member(one, date, how) for one in combinations}
        return Epoch(self.name, self.canaries, {**new, **self.members})

    def text(self) -> str:
        """The text of its file: what it is, then its members by date and key."""
        head = {"canaries": dict(self.canaries), "epoch": self.name, "format": FORMAT}
        ordered = sorted(self.members.values(), key=lambda member: (member.date, member.combination.key))
        lines = [{**asdict(member.combination), "date": member.date, "how": member.how} for member in ordered]
        return "".join(canonical_json(line) + "\n" for line in (head, *lines))


def begin(combinations: Iterable[Combination], canaries: Digests, when: str) -> Epoch:
    """A new epoch, named by when it began (ISO 8601, with hour and minute) and what its canaries measure.

    The canaries run with the kernel of their stack, so ``combinations`` has one for each kernel of the stacks.

    Names are in the order of time, but for those of one minute.
    """
    name = f"{when}-{hashlib.sha256(canonical_json(dict(canaries)).encode()).hexdigest()[:6]}"
    return Epoch(name, dict(canaries), {}).with_members(combinations, when[:10], "began")


def read_epochs(folder: Path) -> list[Epoch]:
    """All epochs, the oldest first; none where there is no folder. Raises StudyError with all problems."""
    problems: list[Problem] = []
    epochs = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            epochs.append(_read(path))
        except (OSError, ValueError, KeyError, TypeError) as error:
            problems.append(Problem(str(path), None, "", f"the epoch cannot be read: {error}"))
    if problems:
        hint = "take the file from the repository again"
        raise StudyError("epochs of evidence are damaged", hint=hint, problems=tuple(problems))
    return epochs


def epoch_of(combination: Combination, epochs: Iterable[Epoch]) -> Epoch | None:
    """Return the newest epoch that has the combination, None if none has."""
    known = [epoch for epoch in epochs if combination.key in epoch.members]
    return known[-1] if known else None


def write_epoch(epoch: Epoch, folder: Path) -> Path:
    """Write an epoch; give its file. Raises RigError."""
    path = folder / f"{epoch.name}{SUFFIX}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, epoch.text())
    except OSError as error:
        raise RigError(f"the epoch cannot be written: {error.strerror}", where=str(path)) from error
    return path


def united(one: Epoch, other: Epoch) -> Epoch:
    """The members of both. Raises StudyError when they are not the same epoch."""
    if (one.name, one.canaries) != (other.name, other.canaries):
        raise StudyError(f"two epochs are called {one.name!r}, and their canaries measure otherwise")
    return Epoch(one.name, one.canaries, _members((*one.members.values(), *other.members.values())))


def _read(path: Path) -> Epoch:
    """A file whose lines may stand in any order, as a merge leaves them. Raises ValueError, KeyError or TypeError."""
    heads, members = [], []
    for line in dict.fromkeys(path.read_text(encoding="ascii").splitlines()):
        data = json.loads(line)
        if "epoch" not in data:
            members.append(Member(Combination.of(data), str(data["date"]), str(data["how"])))
        elif data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r}, and this version reads {FORMAT}")
        else:
            heads.append(Epoch(data["epoch"], dict(data["canaries"]), {}))
    if len(heads) != 1 or heads[0].name != path.name.removesuffix(SUFFIX):
        raise ValueError("it does not begin one epoch, that of the file's name")
    return Epoch(heads[0].name, heads[0].canaries, _members(members))


def _members(members: Iterable[Member]) -> dict[str, Member]:
    """By key; of one that is there twice the earlier."""
    ordered = sorted(members, key=lambda member: (member.date, member.how))
    return {member.combination.key: member for member in reversed(ordered)}
