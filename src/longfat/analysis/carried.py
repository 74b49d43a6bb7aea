# SPDX-License-Identifier: Apache-2.0
"""Metrics of amounts: transfers that were complete, what flows and web users took in.

Owns their definitions; pure functions of rows of ``flows`` and ``web``. Raises NoValue as ``metrics`` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longfat.analysis.metrics import NoValue, of_flows


def transfers(flows: Sequence[Mapping[str, Any]], flow: str | None = None, within_us: float | None = None) -> float:
    """Connections that carried all they had to before the flow ended: one flow's, or the sum of all.

    A count for a time ``within_us`` is had only from flows that lasted as long.
    """
    count = of_flows("transfers", "count of transfers", flows, flow)
    _require_length([row for row in flows if flow in (None, row["flow"])], within_us)
    return count


def carried_gigabytes(
    flows: Sequence[Mapping[str, Any]], flow: str | None = None, within_us: float | None = None
) -> float:
    """Data received in GB (10^9 bytes), incomplete transfers included: one flow's, or the sum of all.

    An amount for a time ``within_us`` is had only from flows that lasted as long.
    """
    total = of_flows("bytes_received", "count of bytes", flows, flow) / 1e9
    _require_length([row for row in flows if flow in (None, row["flow"])], within_us)
    return total


def web_gigabytes(web: Sequence[Mapping[str, Any]], within_us: float | None = None) -> float:
    """GB (10^9 bytes) of content that all web users of a run took in, cut-off transfers included.

    An amount for a time ``within_us`` is had only from users who were there as long.
    """
    _require_length(web, within_us)
    return _web_bytes(web) / 1e9


def web_mbps(web: Sequence[Mapping[str, Any]]) -> float:
    """The same in Mb/s (10^6 bit/s): over the time from the first users' start to the last users' end."""
    total = _web_bytes(web)
    return float(8 * total / (max(row["end_us"] for row in web) - min(row["start_us"] for row in web)))


def web_errors(web: Sequence[Mapping[str, Any]]) -> float:
    """Requests of all web users of a run that failed."""
    _web_bytes(web)
    return float(sum(row["errors"] for row in web))


def _require_length(rows: Sequence[Mapping[str, Any]], within_us: float | None) -> None:
    """Raise NoValue unless each flow or web traffic lasted ``within_us``; None allows any length."""
    lasted = sorted({row["end_us"] - row["start_us"] for row in rows})
    if within_us is not None and lasted != [within_us]:
        shown = ", ".join(f"{value / 1e6:g}" for value in lasted)
        raise NoValue(f"the traffic lasted {shown} s, not {within_us / 1e6:g} s")


def _web_bytes(web: Sequence[Mapping[str, Any]]) -> float:
    if not web:
        raise NoValue("the run has no web traffic")
    return float(sum(row["bytes_received"] for row in web))
