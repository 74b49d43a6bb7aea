# SPDX-License-Identifier: Apache-2.0
"""The measurements of a run as one digest: two runs with equal digests are the same observation.

Owns the choice of raw files: those that numbers come from. Settings, programs' texts and captures are not among them:
they show ports and sequence numbers, which differ by seed and measure nothing.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from longfat.record.bundle import SUMS

NOT_MEASURED = ("run.json", "spec.json", "outcome.json", "environment.json", "achieved.json", "hosts.json")
"""Of the reports of a run those that say how it was done (docs/data.md)."""


def is_measured(name: str) -> bool:
    """Whether a raw file, by its name in the run folder, has measurements: every table, and reports of the run."""
    return name.endswith(".csv") or (name.endswith(".json") and "/" not in name and name not in NOT_MEASURED)


def measured_digest(folder: Path) -> str:
    """SHA-256 (hex) over names and checksums of the measured files of a committed run folder.

    The checksums are those of its SHA256SUMS, which ``read_record`` verifies. Raises OSError when it is not there.
    """
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    measured = [line for line in lines if is_measured(line[66:])]
    return hashlib.sha256("\n".join(measured).encode()).hexdigest()
