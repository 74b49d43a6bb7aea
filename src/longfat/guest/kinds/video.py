# SPDX-License-Identifier: Apache-2.0
"""Video of one run while it happens: a viewer that asks for segment after segment, and chooses the rate of each.

The server is that of requests, over one connection that lasts.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from longfat.guest.files import write_json
from longfat.guest.kinds import requests
from longfat.runspec import RunSpec

FIRST_PORT = 7501  # entry k of the RunSpec's video is served at FIRST_PORT + k
RESERVOIR = 0.25  # with less of its buffer a viewer takes the lowest rate,
CUSHION = 0.9  # with more the highest one, and in between a rate in proportion (Huang et al. 2014)
SAFETY = 0.8  # of the rate that a viewer has seen it takes so much
SEEN = 3  # segments whose harmonic mean that rate is
WAKE_BYTES = 32 << 10  # as in requests
COLUMNS = "t_us,video,bitrate_bps,size_bytes,taken_us,buffer_us,stalled_us"
ASKING = {"users": 1, "request_bytes": 8, "keep": True}


class Traffic(requests.Traffic):
    """All video of a run."""

    kind = "video"
    module = "longfat.guest.kinds.video"
    first_port = FIRST_PORT
    served = ASKING


def report(spec: RunSpec, folder: Path) -> None:
    """Write video.json, and video_segments.csv in the order in which the segments were asked for."""
    reports, rows = [], []
    for one in spec.video:
        told = requests.said(folder, "video", f"{one.name}.ask")
        segments = told.pop("segments")
        rates = [rate for _, rate, *_ in segments]
        reports.append(
            {
                "video": one.name,
                "sender": one.sender,
                "receiver": one.receiver,
                "cca": one.cca,
                "start_us": one.start_us,
                "end_us": one.start_us + one.duration_us,
                "segments": len(segments),
                "mean_bps": round(sum(rates) / len(rates)) if rates else None,
                "switches": sum(a != b for a, b in pairwise(rates)),
                **told,
            }
        )
        rows += [(t_us, one.name, *rest) for t_us, *rest in segments]
    write_json(folder / "video.json", reports)
    with (folder / "video_segments.csv").open("w") as table:
        print(COLUMNS, file=table)
        for row in sorted(rows):
            print(*row, sep=",", file=table)


def by_buffer(ladder: Sequence[int], level: float, before: int) -> int:
    """The rate for a buffer that is filled to ``level`` of 1, after a segment of the rate ``before``.

    The map from buffer to rate is that of BBA-0: the rate changes when the map has reached the next one up or down.
    """
    if level <= RESERVOIR:
        return ladder[0]
    if level >= CUSHION:
        return ladder[-1]
    mapped = ladder[0] + (ladder[-1] - ladder[0]) * (level - RESERVOIR) / (CUSHION - RESERVOIR)
    up = min((rate for rate in ladder if rate > before), default=ladder[-1])
    down = max((rate for rate in ladder if rate < before), default=ladder[0])
    if mapped >= up:
        return max(rate for rate in ladder if rate <= mapped)
    if mapped <= down:
        return min(rate for rate in ladder if rate >= mapped)
    return before


def by_rate(ladder: Sequence[int], seen_bps: Sequence[float]) -> int:
    """The highest rate below a share of the harmonic mean of what the last segments came at; the lowest at first."""
    last = seen_bps[-SEEN:]
    if not last:
        return ladder[0]
    allowed = SAFETY * len(last) / sum(1 / bps for bps in last)
    return max((rate for rate in ladder if rate <= allowed), default=ladder[0])


class Viewer:
    """One viewer: the video in the buffer, and how long the picture stood still for want of it. Times in seconds."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.buffered_s = 0.0
        self.stalled_s = 0.0
        self._plays = False
        self._order = order
        self._rate = order["ladder_bps"][0]
        self._seen_bps: list[float] = []

    def choose(self) -> int:
        """The rate of the next segment."""
        ladder = self._order["ladder_bps"]
        level = self.buffered_s / (self._order["buffer_us"] / 1e6)
        buffer_decides = self._order["choice"] == "buffer"
        self._rate = by_buffer(ladder, level, self._rate) if buffer_decides else by_rate(ladder, self._seen_bps)
        return int(self._rate)

    def pass_by(self, seconds: float) -> None:
        """Let the video play for so long, as far as there is any."""
        if self._plays:
            self.stalled_s += max(0.0, seconds - self.buffered_s)
            self.buffered_s = max(0.0, self.buffered_s - seconds)

    def take_in(self, size_bytes: int, taken_s: float) -> None:
        """A segment has come: it plays from now on, if nothing did before."""
        self._seen_bps.append(8 * size_bytes / taken_s)
        self.buffered_s += self._order["segment_us"] / 1e6
        self._plays = True

    def wait_s(self) -> float:
        """How long the buffer has no room for another segment."""
        over_us: int = self._order["segment_us"] - self._order["buffer_us"]
        return max(0.0, self.buffered_s + over_us / 1e6)


def watch(order: dict[str, Any]) -> dict[str, Any]:
    """Watch until the end; a segment under way then is cut off."""
    origin = order["origin_ns"] / 1e9
    end = origin + (order["start_us"] + order["duration_us"]) / 1e6
    viewer, segments, first, last = Viewer(order), [], None, time.monotonic()
    with socket.create_connection((order["address"], order["port"])) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                stalled, begin, rate = viewer.stalled_s, time.monotonic(), viewer.choose()
                size = rate * order["segment_us"] // 8_000_000
                fetch(connection, size, end)
                now = time.monotonic()
                viewer.pass_by(now - last)
                viewer.take_in(size, now - begin)
                first, last = first or now, now
                stalled_us = round(1e6 * (viewer.stalled_s - stalled))
                row = (round(1e6 * (begin - origin)), rate, size, round(1e6 * (now - begin)))
                segments.append((*row, round(1e6 * viewer.buffered_s), stalled_us))
                time.sleep(max(0.0, min(viewer.wait_s(), end - now)))
                now = time.monotonic()
                viewer.pass_by(now - last)
                last = now
        except TimeoutError:
            viewer.pass_by(time.monotonic() - last)
    startup_us = None if first is None else round(1e6 * (first - origin)) - order["start_us"]
    return {"segments": segments, "stalled_us": round(1e6 * viewer.stalled_s), "startup_us": startup_us}


def fetch(connection: socket.socket, size_bytes: int, end: float) -> None:
    """Ask for a segment and take it in. Raises TimeoutError when that is not done at ``end`` (time.monotonic)."""
    connection.sendall(size_bytes.to_bytes(8, "big"))
    left, buffer = size_bytes, bytearray(1 << 18)
    while left:
        if (rest := end - time.monotonic()) <= 0:
            raise TimeoutError
        connection.settimeout(rest)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, min(left, WAKE_BYTES))
        left -= (came := connection.recv_into(buffer, min(left, len(buffer))))
        if not came:
            raise ConnectionError("the server has ended the connection")


def ask(order: dict[str, Any]) -> None:
    """Be the viewer, then write what became of each segment."""
    json.dump(watch(order), sys.stdout)
