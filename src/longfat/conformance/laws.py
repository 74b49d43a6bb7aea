# SPDX-License-Identifier: Apache-2.0
"""Every law that the kernel is held to, in the order of the report."""

from __future__ import annotations

from longfat.conformance import aimd, binary, compound, delay, fast, highspeed, htcp, lowpriority
from longfat.conformance.law import Law

LAWS: tuple[Law, ...] = (
    *aimd.LAWS,
    *highspeed.LAWS,
    *htcp.LAWS,
    *binary.LAWS,
    *delay.LAWS,
    *lowpriority.LAWS,
    *fast.LAWS,
    *compound.LAWS,
)
