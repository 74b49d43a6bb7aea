# SPDX-License-Identifier: Apache-2.0
"""The measurements of a run as one digest: two runs with equal digests are the same observation.

Owns the choice of raw files: those that numbers come from. Settings, programs' texts and captures are not among them:
they show ports and sequence numbers, which differ by seed and measure nothing.
"""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase
from pathlib import Path

from longfat.record.bundle import SUMS

MEASURED = (
    *("flows.json", "web.json", "counters.json", "sockets.csv", "queues.csv", "arrivals.csv", "datagrams.csv"),
    *("pings.csv", "outstanding/*.csv", "throughput/*.csv"),
)
"""Patterns of the raw files' names in a run folder (docs/formats.md)."""


def measured_digest(folder: Path) -> str:
    """SHA-256 (hex) over names and checksums of the measured files of a committed run folder.

    The checksums are those of its SHA256SUMS, which ``read_record`` verifies. Raises OSError when it is not there.
    """
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    measured = [line for line in lines if any(fnmatchcase(line[66:], pattern) for pattern in MEASURED)]
    return hashlib.sha256("\n".join(measured).encode()).hexdigest()
