# SPDX-License-Identifier: Apache-2.0
"""Kernel regression check: short runs whose measurements show whether a kernel behaves like the references' kernel.

Owns the committed reference, ``kernels/checks.json``, and the comparison with it. Runs nothing and does not know the
runs: a check is a name and the digest of its measurements.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from longfat.system.errors import RigError
from longfat.system.files import write_whole
from longfat.system.identity import KernelSource

REFERENCE = Path("kernels") / "checks.json"
"""Place of the reference under the repository's root."""

COMMAND = "./just kernel-check"
FORMAT = 1

Digests = Mapping[str, str]
"""Digest of the measurements by the name of the check."""


@dataclass(frozen=True)
class Verdict:
    """Number of checks, and the names of those that differ from the reference."""

    count: int
    differing: tuple[str, ...]

    def __str__(self) -> str:
        equal = f"{self.count - len(self.differing)} of {self.count} equal the reference"
        return f"{equal}; these differ: {', '.join(self.differing)}" if self.differing else equal


@dataclass(frozen=True)
class Reference:
    """Digests of the checks, with the kernel's release and all pins of the machine that measured them."""

    kernel_version: str
    pins: Mapping[str, str]
    digests: Digests

    def compare(self, found: Digests) -> Verdict:
        """Compare measurements with the reference; a check that one of the two lacks differs."""
        names = sorted({*found, *self.digests})
        return Verdict(len(names), tuple(name for name in names if found.get(name) != self.digests.get(name)))

    def other_causes(self, pins: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of the pins, other than the kernel, in which the reference differs."""
        return tuple(name for name in ("code", "image") if self.pins.get(name) != pins.get(name))


def read_reference(path: Path) -> Reference:
    """Read the committed reference. Raises RigError if it is missing or damaged."""
    try:
        data = json.loads(path.read_text(encoding="ascii"))
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r} is not {FORMAT}")
        return Reference(data["kernel_version"], dict(data["pins"]), dict(data["digests"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = f"take it from the repository again, or renew it with `{COMMAND} --renew`"
        raise RigError(f"the kernel check's reference cannot be read: {error!r}", where=str(path), hint=hint) from error


def write_reference(path: Path, reference: Reference) -> None:
    """Write the reference. Raises RigError."""
    try:
        text = json.dumps({"format": FORMAT, **asdict(reference)}, sort_keys=True, indent=1)
        write_whole(path, text + "\n")
    except OSError as error:
        raise RigError(f"the kernel check's reference cannot be written: {error}", where=str(path)) from error


def other_releases(sources: Iterable[KernelSource]) -> Iterator[str]:
    """Yield a notice about each kernel that is not of the pinned release."""
    for source in sources:
        if not source.pinned:
            yield f"the kernel is {source.version}, not the pinned release: `{COMMAND}` compares it with the reference"
