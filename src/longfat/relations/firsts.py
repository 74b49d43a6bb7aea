# SPDX-License-Identifier: Apache-2.0
"""The criteria of claims, on which verdicts depend: as first recorded in a results folder, and later changes.

Owns ``claims-first.json``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, TypeAdapter

from longfat.metrics import METRICS
from longfat.metrics.definitions import definition_digest
from longfat.relations.claims import Claim
from longfat.relations.nodes import terms_of
from longfat.system.errors import RigError
from longfat.system.files import write_whole

FIRST = "claims-first.json"
CLOCKS = timedelta(minutes=1)  # allowed difference between the clocks of machines that execute runs
Criterion = Mapping[str, object]
Decisive = Mapping[str, Criterion]


def _with_zone(text: str) -> str:
    if not datetime.fromisoformat(text).tzinfo:
        raise ValueError("a time without a time zone")
    return text


Time = Annotated[str, AfterValidator(_with_zone)]  # ISO 8601


@dataclass(frozen=True)
class First:
    """The first criteria of the claims, with their digest, the time, and whether they precede all runs."""

    sha256: str
    time: Time
    before_runs: bool
    claims: Decisive


def decisive(claims: Sequence[Claim]) -> Decisive:
    """Return the criterion of each claim as plain data."""
    return {claim.id: json.loads(json.dumps(_criterion(claim))) for claim in claims}


def _criterion(claim: Claim) -> Criterion:
    """Return the keys of a claim on which its verdict depends, with the definitions of its metrics."""
    metrics = {term.metric for relation in claim.relations for term in terms_of(*relation.sides)}
    return {
        "statement": claim.statement,
        "paper": claim.paper,
        "relation": [relation.text for relation in claim.relations],
        "metrics": sorted(f"{name}@{definition_digest(METRICS[name])}" for name in metrics if name in METRICS),
        "not_testable": claim.not_testable,
        "kind": claim.kind,
        "retest": [one.model_dump(mode="json") if one else None for one in claim.retests],
        "needs": claim.needs.model_dump(mode="json") if claim.needs else None,
        "inconsistent": bool(claim.inconsistent),
        "scenario_differs": claim.scenario_differs,
        "contradicts": list(claim.contradicts),
        "same_as": claim.same_as,
        "oracle": sorted(claim.oracle.values()),
    }


def digest(claims: Decisive | Criterion) -> str:
    """Return the SHA-256 of criteria, or of one, independent of their order."""
    return hashlib.sha256(json.dumps(claims, sort_keys=True).encode()).hexdigest()


def keep_first(results: Path, claims: Sequence[Claim], before_runs: bool) -> First:
    """Return the first claims of the folder, recording them if there are none. Raises RigError on an unusable file."""
    path = results / FIRST
    if path.exists():
        return read_first(path)
    now = decisive(claims)
    first = First(digest(now), datetime.now(UTC).isoformat(timespec="seconds"), before_runs, now)
    try:
        write_whole(path, json.dumps(vars(first), sort_keys=True, indent=1))
    except OSError as error:
        raise RigError(f"the first claims cannot be written: {error.strerror}", where=str(path)) from error
    return first


def read_first(path: Path) -> First:
    """Read the first claims. Raises RigError on an unusable file."""
    try:
        kept = TypeAdapter(list[First], config=ConfigDict(extra="forbid"))
        (first,) = kept.validate_python([json.loads(path.read_text(encoding="ascii"))])
        if digest(first.claims) != first.sha256:
            raise ValueError("its claims do not have its digest")
        return first
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise RigError(f"the first claims cannot be read: {error!r}", where=str(path)) from error


def recorded_before(first: First, results: Path) -> bool:
    """Return whether the first claims precede every run whose record is in the folder.

    A record that was copied into the folder may be older than its ``claims-first.json``.
    """
    time = datetime.fromisoformat(first.time) - CLOCKS
    return first.before_runs and not any(start < time for start in _starts(results))


def _starts(results: Path) -> Iterator[datetime]:
    """Yield the start of each recorded run that can be read; damaged records count as missing runs."""
    for path in (results / "raw").glob("[!.]*/run.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            start = datetime.fromisoformat(json.loads(path.read_bytes())["started_utc"])
            yield start if start.tzinfo else start.replace(tzinfo=UTC)


def changes(first: First, claims: Sequence[Claim]) -> Iterator[str]:
    """Yield the changes since the first claims, one line for each claim and key."""
    now = decisive(claims)
    for name in sorted({*first.claims, *now}):
        if name not in first.claims:
            yield f"{name}: added"
        elif name not in now:
            yield f"{name}: removed"
        else:
            yield from differences(name, first.claims[name], now[name])


def differences(name: str, before: Criterion, now: Criterion) -> Iterator[str]:
    """Yield the keys of a claim's criterion that differ; keys that an older version did not record are not compared."""
    for key in sorted(before):
        if before[key] != now.get(key):
            yield f"{name}, {key}: was {_shown(before[key])}, is {_shown(now.get(key))}"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(_shown, value)) or "none"
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value)
