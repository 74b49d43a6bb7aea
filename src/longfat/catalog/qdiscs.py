# SPDX-License-Identifier: Apache-2.0
"""The queueing disciplines that a bottleneck may have. Plain data: ``tc`` is never called here."""

from __future__ import annotations

from collections.abc import Mapping

QDISCS: Mapping[str, str] = {
    "pfifo": "first in, first out, tail drop, limit in packets (tc-pfifo(8))",
    "red": "marks or drops at random as the average length grows (tc-red(8))",
}
