# SPDX-License-Identifier: Apache-2.0
"""The first claims of a results folder, recorded before its runs, and later changes of their limits.

Owns ``claims-first.json``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from longfat.relations.claims import Claim
from longfat.system.errors import RigError
from longfat.system.files import write_whole

FIRST = "claims-first.json"
Decisive = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class First:
    """The parts of the claims on which verdicts depend, their digest, the time, and whether runs existed."""

    sha256: str
    time: str
    before_runs: bool
    claims: Decisive


def decisive(claims: Sequence[Claim]) -> Decisive:
    """Return the parts of the claims on which verdicts depend, by claim."""
    return {
        claim.id: {
            "relation": [relation.text for relation in claim.relations],
            "not_testable": claim.not_testable,
            "kind": claim.kind,
            "retest": [one.model_dump(mode="json") if one else None for one in claim.retests],
            "needs": claim.needs.model_dump(mode="json") if claim.needs else None,
            "inconsistent": bool(claim.inconsistent),
            "contradicts": list(claim.contradicts),
            "same_as": claim.same_as,
            "oracle": sorted(claim.oracle.values()),
        }
        for claim in claims
    }


def digest(claims: Decisive) -> str:
    """Return the SHA-256 of these parts, independent of the order of the claims."""
    return hashlib.sha256(json.dumps(claims, sort_keys=True).encode()).hexdigest()


def keep_first(results: Path, claims: Sequence[Claim], before_runs: bool) -> First:
    """Return the folder's first claims, recorded now if there are none. Raises RigError if the file cannot be used."""
    path = results / FIRST
    now = decisive(claims)
    try:
        if not path.exists():
            first = First(digest(now), datetime.now(UTC).isoformat(timespec="seconds"), before_runs, now)
            write_whole(path, json.dumps(vars(first), sort_keys=True, indent=1))
            return first
        first = First(**json.loads(path.read_text(encoding="ascii")))
        if digest(first.claims) != first.sha256:
            raise ValueError("its claims do not have its digest")
        return first
    except (OSError, ValueError, TypeError) as error:
        raise RigError(f"the first claims cannot be read: {error!r}", where=str(path)) from error


def changes(first: First, claims: Sequence[Claim]) -> Iterator[str]:
    """Yield the changes since then, one line for each claim and key."""
    now = json.loads(json.dumps(decisive(claims)))
    for name in sorted({*first.claims, *now}):
        if name not in first.claims:
            yield f"{name}: added"
        elif name not in now:
            yield f"{name}: removed"
        else:
            for key in sorted({*first.claims[name], *now[name]}):
                was, is_ = first.claims[name].get(key), now[name].get(key)
                if was != is_:
                    yield f"{name}, {key}: was {_shown(was)}, is {_shown(is_)}"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(_shown, value)) or "none"
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value)
