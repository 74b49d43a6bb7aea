# SPDX-License-Identifier: Apache-2.0
"""Metrics of web traffic: the data that the users of a run received. Its many users make one run enough."""

from __future__ import annotations

import numpy as np

from longfat.metrics.data import NoValue, WebRows
from longfat.metrics.goodput import require_length
from longfat.metrics.registry import metric


@metric("GB", "content that web users took in", bounds=(0, np.inf), name="web_bytes")
def web_gigabytes(web: WebRows, within_us: float | None = None) -> float:
    """GB (10^9 bytes) of content that all web users of a run received, interrupted transfers included.

    An amount for a time ``within_us`` exists only for users who were active as long.
    """
    require_length(web, within_us)
    return _web_bytes(web) / 1e9


@metric("Mb/s", "content that web users took in per second", bounds=(0, np.inf), name="web_rate")
def web_mbps(web: WebRows) -> float:
    """The same in Mb/s (10^6 bit/s): over the time from the first users' start to the last users' end."""
    total = _web_bytes(web)
    return float(8 * total / (max(row["end_us"] for row in web) - min(row["start_us"] for row in web)))


def _web_bytes(web: WebRows) -> float:
    if not web:
        raise NoValue("the run has no web traffic")
    return float(sum(row["bytes_received"] for row in web))
