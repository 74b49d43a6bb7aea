# SPDX-License-Identifier: Apache-2.0
"""Queueing disciplines of a bottleneck. Plain data: nothing is applied here."""

from __future__ import annotations

from collections.abc import Mapping

QDISCS: Mapping[str, str] = {
    "pfifo": "first in, first out, tail drop, limit in packets (tc-pfifo(8))",
    "bfifo": "as pfifo, limit in bytes of whole frames (tc-bfifo(8))",
    "red": "marks or drops at random as the average length grows (tc-red(8))",
    "codel": "drops at ever shorter intervals while the queueing delay exceeds a target (RFC 8289)",
    "fq_codel": "CoDel for each flow, and flows in turn (RFC 8290)",
    "fq": "flows in turn, tail drop, pacing of senders (tc-fq(8))",
    "pie": "drops at random to hold the queueing delay at a target (RFC 8033)",
    "fq_pie": "PIE for each flow, and flows in turn (tc-fq_pie(8))",
    "cake": "CoDel for each flow, hosts and flows in turn, one to eight classes (tc-cake(8))",
    "sfq": "flows in turn, by a hash that may change over time (tc-sfq(8))",
    "dualpi2": "two coupled queues, one for low latency (RFC 9332); only in kernel linux-7.3",
    "step": "marks every packet whose queueing delay exceeds a threshold (RFC 8257)",
}
