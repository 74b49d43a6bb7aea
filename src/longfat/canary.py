# SPDX-License-Identifier: Apache-2.0
"""Canaries: short runs whose measured bytes show whether a kernel behaves like the references' kernel.

Owns the committed reference (kernels/canaries.json), the comparison with it, and the verdicts that are kept in the
cache folder. Runs nothing and does not know the runs: a canary is a name and the digest of its measurements.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from longfat.cache import cache_folder
from longfat.errors import RigError
from longfat.files import write_whole
from longfat.identity import KernelSource

REFERENCE = Path("kernels") / "canaries.json"
"""Where the reference is, under the repository's root."""

COMMAND = "./just kernel-check"
FORMAT = 1

Digests = Mapping[str, str]
"""The digest of the measurements, by the canary's name."""


@dataclass(frozen=True)
class Verdict:
    """How many canaries there are, and which of them do not behave like the reference."""

    count: int
    differing: tuple[str, ...]

    def __str__(self) -> str:
        same = f"{self.count - len(self.differing)} of {self.count} behave like the reference"
        return f"{same}; these do not: {', '.join(self.differing)}" if self.differing else same


@dataclass(frozen=True)
class Reference:
    """The digests of the canaries, and the kernel's release and all pins that they were measured with."""

    kernel_version: str
    pins: Mapping[str, str]
    digests: Digests

    def compare(self, found: Digests) -> Verdict:
        """Compare the measurements with the reference; a canary that one of the two lacks differs."""
        names = sorted({*found, *self.digests})
        return Verdict(len(names), tuple(name for name in names if found.get(name) != self.digests.get(name)))

    def other_causes(self, pins: Mapping[str, str]) -> tuple[str, ...]:
        """The pins, other than the kernel, in which the reference differs, by name."""
        return tuple(name for name in ("code", "image") if self.pins.get(name) != pins.get(name))


def read_reference(path: Path) -> Reference | None:
    """The committed reference; None where there is none. Raises RigError when it is damaged."""
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text(encoding="ascii"))
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r} is not {FORMAT}")
        return Reference(data["kernel_version"], dict(data["pins"]), dict(data["digests"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = f"take it from the repository again, or renew it with `{COMMAND} --renew`"
        raise RigError(f"the canaries' reference cannot be read: {error!r}", where=str(path), hint=hint) from error


def write_reference(path: Path, reference: Reference) -> None:
    """Write the reference. Raises RigError."""
    try:
        path.parent.mkdir(exist_ok=True)
        text = json.dumps({"format": FORMAT, **asdict(reference)}, sort_keys=True, indent=1)
        write_whole(path, text + "\n")
    except OSError as error:
        raise RigError(f"the canaries' reference cannot be written: {error.strerror}", where=str(path)) from error


def keep(verdict: Verdict, reference: Reference, pins: Mapping[str, str]) -> None:
    """Remember the verdict in the cache folder, as far as that can be written to."""
    path = _place(reference, pins)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(asdict(verdict)))


def kept(reference: Reference, pins: Mapping[str, str]) -> Verdict | None:
    """The verdict on the same kernel, image and laboratory by the same reference, if there was one."""
    try:
        data = json.loads(_place(reference, pins).read_text(encoding="ascii"))
        return Verdict(int(data["count"]), tuple(data["differing"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def doubts(kernels: Mapping[str, KernelSource], pins: Mapping[str, str], path: Path) -> Iterator[str]:
    """Notices about each kernel (by its digest) that is not built from the pinned release."""
    for digest, source in kernels.items():
        if source.pinned:
            continue
        reference = read_reference(path)
        verdict = kept(reference, {**pins, "kernel": digest}) if reference else None
        command = f"`{COMMAND}` checks whether it behaves the same"
        unknown = command if digest == pins.get("kernel") else "canaries are only for the default kernel"
        known = f"of its canaries {verdict}" if verdict else unknown
        yield f"the kernel is not of the pinned release but {source.version}: {known}"


def _place(reference: Reference, pins: Mapping[str, str]) -> Path:
    text = json.dumps([asdict(reference), dict(pins)], sort_keys=True)
    return cache_folder() / "canaries" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
