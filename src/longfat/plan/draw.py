# SPDX-License-Identifier: Apache-2.0
"""Seeded random choices that are the same on every machine and under every version of Python.

Each choice is a digest of its purpose and does not depend on earlier draws.
"""

from __future__ import annotations

import hashlib

from longfat.spec.plain import canonical_json


def digest(*parts: str | int) -> str:
    """Return the SHA-256 (hex) of the parts."""
    return hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()


def seed_of(*parts: str | int) -> int:
    """Return a seed of 48 bits, which every JSON reader and Parquet's int64 keep exactly."""
    return int(digest(*parts)[:12], 16)


def uniform(largest: int, *parts: str | int) -> int:
    """Return a whole number from 0 to ``largest``, both included; with 256 bits the bias is negligible.

    With the same parts the number is proportional to the width of the range.
    """
    return int(digest(*parts), 16) * (largest + 1) >> 256
