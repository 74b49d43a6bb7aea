# SPDX-License-Identifier: Apache-2.0
"""Metrics of traffic in pieces: short flows, segments of video, rounds of incast."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from longfat.dataset.load import Columns
from longfat.metrics.data import Array, NoValue, columns_of, union_us
from longfat.metrics.registry import metric

Completions = Annotated[Columns, columns_of("completions")]
Segments = Annotated[Columns, columns_of("video_segments")]
Rounds = Annotated[Columns, columns_of("incast_rounds")]


def _of_size(completions: Completions, above_bytes: float, up_to_bytes: float, name: str) -> Array:
    """Return a column of the flows whose sizes lie between the two. Raises NoValue if there is none."""
    sizes = completions["size_bytes"].astype(np.float64)
    found: Array = completions[name].astype(np.float64)[(sizes > above_bytes) & (sizes <= up_to_bytes)]
    if not len(found):
        raise NoValue("the run has no short flow of such a size")
    return found


def _slowdowns(completions: Completions, above_bytes: float, up_to_bytes: float) -> Array:
    taken = _of_size(completions, above_bytes, up_to_bytes, "completion_us")
    return taken / _of_size(completions, above_bytes, up_to_bytes, "ideal_us")


@metric("", "mean slowdown of a short flow", bounds=(1, np.inf))
def slowdown(completions: Completions, above_bytes: float = 0.0, up_to_bytes: float = np.inf) -> float:
    """Mean ratio of a short flow's completion time to the least time that the path allows.

    The least time is two round trips at the smallest delays of the links, for connection and request, plus the time of
    all frames at the highest rate of the slowest link. With `above` and `up_to`, only flows of these sizes count.
    """
    return float(_slowdowns(completions, above_bytes, up_to_bytes).mean())


@metric("Mb/s", "mean rate of a video", bounds=(0, np.inf))
def video_rate(segments: Segments) -> float:
    """Mean encoded rate of the segments that the viewers of a run received, in Mb/s: the quality of the picture."""
    if not len(segments["bitrate_bps"]):
        raise NoValue("no segment of a video came")
    return float(segments["bitrate_bps"].astype(np.float64).mean()) / 1e6


@metric("Mb/s", "goodput of incast while it lasts", bounds=(0, np.inf))
def incast_goodput(rounds: Rounds) -> float:
    """Bytes of all rounds over the union of their times, without the pauses, in Mb/s."""
    begun = rounds["t_us"].astype(np.float64)
    taken = union_us(zip(begun, begun + _completions(rounds), strict=True))
    sent = (rounds["senders"].astype(np.float64) * rounds["block_bytes"].astype(np.float64)).sum()
    return float(8 * sent / taken)


def _completions(rounds: Rounds) -> Array:
    found: Array = rounds["completion_us"].astype(np.float64)
    if not len(found):
        raise NoValue("no round of incast was complete")
    return found
