# SPDX-License-Identifier: Apache-2.0
"""The queueing disciplines that a bottleneck may have. Plain data: ``tc`` is never called here."""

from __future__ import annotations

from collections.abc import Mapping

QDISCS: Mapping[str, str] = {
    "pfifo": "first in, first out, tail drop, limit in packets (tc-pfifo(8))",
    "bfifo": "the same with its limit in bytes of whole frames (tc-bfifo(8))",
    "red": "marks or drops at random as the average length grows (tc-red(8))",
    "codel": "drops at shorter and shorter intervals while packets wait longer than a target (RFC 8289)",
    "fq_codel": "a CoDel for each flow, and flows in turn (RFC 8290)",
    "fq": "flows in turn, tail drop, paced senders kept to their rate (tc-fq(8))",
    "pie": "drops at random, so that packets wait for a target (RFC 8033)",
    "fq_pie": "a PIE for each flow, and flows in turn (tc-fq_pie(8))",
    "cake": "a CoDel for each flow, and hosts and flows in turn, in one to eight classes (tc-cake(8))",
    "sfq": "flows in turn, by a hash that may change with time (tc-sfq(8))",
    "dualpi2": "two queues, coupled, one of them for low latency (RFC 9332); in kernel linux-7.3",
    "step": "marks every packet that has waited longer than a threshold (RFC 8257)",
}
