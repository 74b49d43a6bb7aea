# SPDX-License-Identifier: Apache-2.0
"""Metrics of traffic that comes in pieces: short flows, segments of video, rounds of incast; and of programs."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from longfat.dataset.load import Columns
from longfat.metrics.data import Array, NoValue, columns_of, union_us
from longfat.metrics.registry import metric

Completions = Annotated[Columns, columns_of("completions")]
Videos = Annotated[Columns, columns_of("video")]
Segments = Annotated[Columns, columns_of("video_segments")]
Rounds = Annotated[Columns, columns_of("incast_rounds")]
Programs = Annotated[Columns, columns_of("programs")]

LATE_PERCENT = 99


def _of_size(completions: Completions, above_bytes: float, up_to_bytes: float, name: str) -> Array:
    """A column of the flows whose sizes lie between the two. Raises NoValue where there is none."""
    sizes = completions["size_bytes"].astype(np.float64)
    found: Array = completions[name].astype(np.float64)[(sizes > above_bytes) & (sizes <= up_to_bytes)]
    if not len(found):
        raise NoValue("the run has no short flow of such a size")
    return found


def _slowdowns(completions: Completions, above_bytes: float, up_to_bytes: float) -> Array:
    taken = _of_size(completions, above_bytes, up_to_bytes, "completion_us")
    return taken / _of_size(completions, above_bytes, up_to_bytes, "ideal_us")


@metric("ms", "mean time of a short flow", bounds=(0, np.inf))
def completion_time(completions: Completions, above_bytes: float = 0.0, up_to_bytes: float = np.inf) -> float:
    """Mean time from the start of a short flow's connection to its last byte, in milliseconds.

    Of all short flows of a run that ended in it, or of those of more than `above` and up to `up_to`.
    """
    return float(_of_size(completions, above_bytes, up_to_bytes, "completion_us").mean()) / 1000


@metric("ms", "median time of a short flow", bounds=(0, np.inf))
def median_completion_time(completions: Completions, above_bytes: float = 0.0, up_to_bytes: float = np.inf) -> float:
    """The median of the times that `completion_time` is the mean of, in milliseconds."""
    return float(np.median(_of_size(completions, above_bytes, up_to_bytes, "completion_us"))) / 1000


@metric("ms", "time that one short flow of a hundred exceeds", bounds=(0, np.inf))
def late_completion_time(completions: Completions, above_bytes: float = 0.0, up_to_bytes: float = np.inf) -> float:
    """The 99th percentile of the times that `completion_time` is the mean of, in milliseconds."""
    times = _of_size(completions, above_bytes, up_to_bytes, "completion_us")
    return float(np.percentile(times, LATE_PERCENT)) / 1000


@metric("", "mean slowdown of a short flow", bounds=(1, np.inf))
def slowdown(completions: Completions, above_bytes: float = 0.0, up_to_bytes: float = np.inf) -> float:
    """Mean over short flows of the time that each took, as a multiple of the least time that the path allows.

    The least time is two round trips at the least delays that the links ever have, for connection and request, and the
    time of all frames at the highest rate that the slowest link ever has. Flows are chosen as in `completion_time`.
    """
    return float(_slowdowns(completions, above_bytes, up_to_bytes).mean())


@metric("", "slowdown that one short flow of a hundred exceeds", bounds=(1, np.inf))
def late_slowdown(completions: Completions, above_bytes: float = 0.0, up_to_bytes: float = np.inf) -> float:
    """The 99th percentile of the slowdowns that `slowdown` is the mean of."""
    return float(np.percentile(_slowdowns(completions, above_bytes, up_to_bytes), LATE_PERCENT))


@metric("Mb/s", "mean rate of a video", bounds=(0, np.inf))
def video_rate(segments: Segments) -> float:
    """Mean rate of the segments that a run's viewers got, in Mb/s: what the picture is worth."""
    if not len(segments["bitrate_bps"]):
        raise NoValue("no segment of a video came")
    return float(segments["bitrate_bps"].astype(np.float64).mean()) / 1e6


@metric("s", "time for which a video stood still", bounds=(0, np.inf))
def rebuffer_time(video: Videos) -> float:
    """Time for which a viewer's picture stood still for want of a segment, the wait for the first one apart.

    In seconds; the mean over the viewers of a run.
    """
    return float(video["stalled_us"].astype(np.float64).mean()) / 1e6


@metric("", "changes of a video's rate", bounds=(0, np.inf))
def rate_switches(video: Videos) -> float:
    """How often a segment had another rate than the one before; the mean over the viewers of a run."""
    return float(video["switches"].astype(np.float64).mean())


@metric("ms", "mean time of a round of incast", bounds=(0, np.inf))
def incast_time(rounds: Rounds) -> float:
    """Mean time from the request to the last byte of the slowest sender, in milliseconds."""
    return float(_completions(rounds).mean()) / 1000


@metric("ms", "time that one round of incast in a hundred exceeds", bounds=(0, np.inf))
def late_incast_time(rounds: Rounds) -> float:
    """The 99th percentile of the times that `incast_time` is the mean of, in milliseconds."""
    return float(np.percentile(_completions(rounds), LATE_PERCENT)) / 1000


@metric("Mb/s", "goodput of incast while it lasts", bounds=(0, np.inf))
def incast_goodput(rounds: Rounds) -> float:
    """Bytes of all rounds over the union of the times of all rounds, pauses apart, in Mb/s."""
    begun = rounds["t_us"].astype(np.float64)
    taken = union_us(zip(begun, begun + _completions(rounds), strict=True))
    sent = (rounds["senders"].astype(np.float64) * rounds["block_bytes"].astype(np.float64)).sum()
    return float(8 * sent / taken)


def _completions(rounds: Rounds) -> Array:
    found: Array = rounds["completion_us"].astype(np.float64)
    if not len(found):
        raise NoValue("no round of incast was complete")
    return found


@metric("Mb/s", "goodput of programs on the wire", bounds=(0, np.inf))
def program_goodput(programs: Programs) -> float:
    """Bytes that UDP or TCP carried from a study's programs to the receivers' interfaces, over their time, in Mb/s.

    Of all programs of a run, over the union of their times. Retransmissions count as they arrive: the wire tells no
    difference.
    """
    if not len(programs["end_us"]):
        raise NoValue("the run has no program")
    lasted_us = union_us(zip(programs["start_us"].tolist(), programs["end_us"].tolist(), strict=True))
    return float(8 * programs["payload_bytes"].astype(np.float64).sum() / lasted_us)
