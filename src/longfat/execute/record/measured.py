# SPDX-License-Identifier: Apache-2.0
"""The measurements of a run as one digest: two runs with equal digests are the same observation.

Owns the choice of raw files: the sources of numbers. Settings, output of programs and captures are excluded: their
ports and sequence numbers differ by seed and measure nothing.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from longfat.execute.record.bundle import SUMS
from longfat.study.traffic.qlog import SUFFIXES as QLOG

NOT_MEASURED = ("run.json", "spec.json", "outcome.json", "environment.json", "achieved.json", "hosts.json")
"""Reports about the execution of a run, not about its measurements (docs/data.md)."""


def is_measured(name: str) -> bool:
    """Return whether a raw file, given by its name, has measurements: every table, every qlog, and some reports."""
    return name.endswith((".csv", *QLOG)) or (name.endswith(".json") and "/" not in name and name not in NOT_MEASURED)


def measured_digest(folder: Path) -> str:
    """Return the SHA-256 (hex) of names and checksums of the measured files of a committed run folder.

    The checksums come from its SHA256SUMS, which ``read_record`` verifies. Raises OSError if that is missing.
    """
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    measured = [line for line in lines if is_measured(line[66:])]
    return hashlib.sha256("\n".join(measured).encode()).hexdigest()
