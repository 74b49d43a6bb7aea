# SPDX-License-Identifier: Apache-2.0
"""The members with which the reports of all kinds of traffic begin."""

from __future__ import annotations

from typing import Any

from longfat.runspec import Sent, SentOverTcp


def report_of(kind: str, one: Sent) -> dict[str, Any]:
    """Return name, hosts, times and congestion control of a traffic as its report has them."""
    found: dict[str, Any] = {kind: one.name, "sender": one.sender, "receiver": one.receiver}
    found |= {"start_us": one.start_us, "end_us": one.start_us + one.duration_us}
    return found | ({"cca": one.cca} if isinstance(one, SentOverTcp) else {})
