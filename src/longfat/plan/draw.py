# SPDX-License-Identifier: Apache-2.0
"""Seeded random choices that are the same on every machine and under every version of Python.

Each is a digest of its purpose, so no choice depends on the number of earlier draws.
"""

from __future__ import annotations

import hashlib

from longfat.plain import canonical_json


def digest(*parts: str | int) -> str:
    """SHA-256 (hex) of the parts."""
    return hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()


def seed_of(*parts: str | int) -> int:
    """A seed of 48 bits: every JSON reader and Parquet's int64 keep it exactly."""
    return int(digest(*parts)[:12], 16)


def uniform(largest: int, *parts: str | int) -> int:
    """A whole number from 0 to ``largest``, both included; 256 bits leave no bias worth naming.

    The same parts give the same place in any range: where the range is wider, the number is larger in proportion.
    """
    return int(digest(*parts), 16) * (largest + 1) >> 256
