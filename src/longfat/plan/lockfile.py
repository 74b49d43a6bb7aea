# SPDX-License-Identifier: Apache-2.0
"""Writing and reading of ``lock.json``. Must not decide the content of a plan."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from longfat.plan.model import Plan
from longfat.spec.plain import canonical_json
from longfat.system.checksums import write_checksums
from longfat.system.errors import RecordError, StudyError
from longfat.system.files import write_whole

LOCK = "lock.json"


def write_lock(plan: Plan, path: Path) -> None:
    """Write the plan atomically.

    Raises StudyError if the folder cannot be written, or has the results of another study.
    """
    require_study(path, plan.study)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, plan.to_json())
        write_checksums(path.parent, "lock", [path])
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = "name a writable folder with --results"
        raise StudyError(f"the lock cannot be written: {reason}", where=str(path), hint=hint) from error


def require_same(text: str, place: str, other: str, other_place: str) -> None:
    """Raise StudyError with the keys in which two locks differ, unless they are byte-identical."""
    if text == other:
        return
    try:
        one, two = json.loads(text), json.loads(other)
        names = sorted(key for key in {*one, *two} if one.get(key) != two.get(key))
    except (ValueError, TypeError, AttributeError, RecursionError):
        names = ["their readable parts"]
    raise StudyError(
        f"the lock differs from {place} in {', '.join(names)}",
        where=other_place,
        hint="one version of Longfat, kernel and image, one study and one set of options give the same lock",
    )


def require_study(path: Path, study: str) -> None:
    """Raise StudyError if the lock belongs to another study; an unreadable lock belongs to none."""
    try:
        there = json.loads(path.read_text(encoding="ascii"))["study"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return
    if there != study:
        message = f"the folder has results of the study {there!r}, not of {study!r}"
        raise StudyError(message, where=str(path.parent), hint="give each study a separate folder with --results")


def read_lock(path: Path) -> Plan:
    """Read a lock, and check that each run has the digest of its spec.

    Raises StudyError if it does not exist, RecordError if it is damaged or from another version.
    """
    try:
        text = path.read_text(encoding="ascii")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StudyError(
            f"the lock cannot be read: {reason}", where=str(path), hint="create it with `./just run STUDY`"
        ) from error
    except UnicodeDecodeError as error:
        raise _damaged(path, "it is not ASCII text") from error
    try:
        return _plan_of(text)
    except KeyError as error:
        raise _damaged(path, f"{error} is missing") from error
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _damaged(path, str(error)) from error


@lru_cache(maxsize=1)  # dataset and report read the same lock, and 1,000 runs take seconds
def _plan_of(text: str) -> Plan:
    data = json.loads(text)
    plan = Plan.from_dict(data)
    # Compared as text, because an older lock lacks later fields.
    if f"{canonical_json(data)}\n" != text:
        raise ValueError("it is not in canonical form")
    return plan


def _damaged(path: Path, reason: str) -> RecordError:
    hint = "delete it and create it again with `./just run STUDY`; runs on disk are kept"
    return RecordError(f"the lock is damaged, or of another version of Longfat: {reason}", where=str(path), hint=hint)


def left_out_by_backend(path: Path) -> dict[str, str]:
    """Return, by experiment, the reason why the backend left out points, without checking the lock's digests.

    Empty without a readable lock, which other readers report.
    """
    try:
        excluded = json.loads(path.read_text(encoding="ascii"))["excluded"]
        return {one["experiment"]: one["reason"] for one in excluded}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
