# SPDX-License-Identifier: Apache-2.0
"""All samples of sockets and queues in few bytes, for the explorer of a report.

Owns the encoding (docs/report.md): each column is one stream of whole numbers, series after series, each the difference
from the one before, folded so that small ones are small (zigzag) and written in as many bytes of seven bits as it needs
(LEB128). ``explorer.js`` reads it. Samples are rounded as ``COLUMNS`` says, and thinned where there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from longfat.dataset.load import Columns, Dataset

Whole = npt.NDArray[np.int64]

COLUMNS: Mapping[str, float] = {
    "t_ms": 1e-3,
    "cwnd_segments": 1.0,
    "ssthresh_segments": 1.0,
    "inflight_segments": 1.0,
    "srtt_us": 0.01,  # in tenths of a millisecond
    "retrans_total": 1.0,
    "dwnd_segments": 1.0,
    "acked_mbps": 1.0,
    "pacing_bps": 1e-4,  # in hundredths of a Mbit/s
    "delivery_bps": 1e-4,
    "app_limited_us": 1e-3,
    "rwnd_limited_us": 1e-3,
    "sndbuf_limited_us": 1e-3,
    "queue_t_ms": 1e-3,
    "backlog_packets": 1.0,
    "state_t_ms": 1e-3,
    "state_values": 1.0,
}
"""The columns in the order of the file, with what a value of the dataset is multiplied by before it is rounded."""

MEAN_US = 200_000  # the acknowledged rate is a mean over this time
MOST = 400_000  # samples: of more, each series keeps every k-th
UNSET = 2**31 - 1  # ssthresh before the first cut (TCP_INFINITE_SSTHRESH, linux/tcp.h)
_SAMPLED = (
    *("cwnd_segments", "ssthresh_segments", "inflight_segments", "srtt_us", "retrans_total", "dwnd_segments"),
    *("pacing_bps", "delivery_bps", "app_limited_us", "rwnd_limited_us", "sndbuf_limited_us"),
)
_STATE_DIGITS = 5  # of the largest value of a series of cca_state


@dataclass(frozen=True)
class Samples:
    """Series with their numbers of samples, and the encoded columns.

    ``sockets`` has run, flow, stream and length of each series, ``queues`` run, interface and length, ``states`` run,
    flow, stream, name, power of ten of its unit, and length; runs are places in the list that was given. ``every`` says
    which part of the samples is there: every k-th.
    """

    sockets: tuple[tuple[int, str, int, int], ...]
    queues: tuple[tuple[int, str, int], ...]
    states: tuple[tuple[int, str, int, str, int, int], ...]
    columns: tuple[bytes, ...]
    every: int


def samples_of(dataset: Dataset, runs: Sequence[str]) -> Samples:
    """The samples of runs, given by their ids."""
    sockets = dataset.whole("sockets", ("run_id", "flow", "stream", "t_us", "bytes_acked", *_SAMPLED))
    queues = dataset.whole("queues", ("run_id", "interface", "t_us", "backlog_packets"))
    states = dataset.whole("cca_state", ("run_id", "flow", "stream", "name", "t_us", "value"))
    every = max(1, -(-sum(len(table["t_us"]) for table in (sockets, queues, states)) // MOST))
    own, socket_keys, socket_starts = _ordered(sockets, ("flow", "stream"), runs, every)
    waiting, queue_keys, queue_starts = _ordered(queues, ("interface",), runs, every)
    told, state_keys, state_starts = _ordered(states, ("flow", "stream", "name"), runs, every)
    kept = _busy(waiting["backlog_packets"], queue_starts)
    own["acked_mbps"] = _acked_rate(own, socket_starts)
    own["ssthresh_segments"] = np.where(own["ssthresh_segments"] >= UNSET, 0, own["ssthresh_segments"])
    ends = np.append(queue_starts[1:], len(waiting["t_us"]))
    rows = np.concatenate([np.arange(queue_starts[i], ends[i]) for i in kept]) if kept else np.zeros(0, np.int64)
    lengths = [int(ends[i] - queue_starts[i]) for i in kept]
    starts = np.cumsum([0, *lengths[:-1]]) if lengths else np.zeros(0, np.int64)
    named = {**own, "t_ms": own["t_us"], "queue_t_ms": waiting["t_us"][rows]}
    named["backlog_packets"] = waiting["backlog_packets"][rows]
    state_counts = np.diff(np.append(state_starts, len(told["t_us"])))
    powers = _powers(told["value"], state_starts)
    named |= {"state_t_ms": told["t_us"], "state_values": told["value"] / 10.0 ** np.repeat(powers, state_counts)}
    begin = {"queue_t_ms": starts, "backlog_packets": starts, "state_t_ms": state_starts, "state_values": state_starts}
    columns = tuple(
        encoded(_rounded(named[name], factor), begin.get(name, socket_starts)) for name, factor in COLUMNS.items()
    )
    counts = np.diff(np.append(socket_starts, len(own["t_us"])))
    return Samples(
        tuple((*key, int(count)) for key, count in zip(socket_keys, counts, strict=True)),
        tuple((*queue_keys[i], length) for i, length in zip(kept, lengths, strict=True)),
        tuple(
            (*key, int(power), int(count)) for key, power, count in zip(state_keys, powers, state_counts, strict=True)
        ),
        columns,
        every,
    )


def encoded(values: Whole, starts: Whole) -> bytes:
    """Whole numbers as a stream of bytes; a series begins at each of ``starts``."""
    if not len(values):
        return b""
    steps = np.diff(values, prepend=0)
    steps[starts] = values[starts]
    folded = ((steps << 1) ^ (steps >> 63)).astype(np.uint64)
    longest = max(1, -(-int(folded.max()).bit_length() // 7))
    parts = np.stack([(folded >> np.uint64(7 * i)) & np.uint64(127) for i in range(longest)], axis=1).astype(np.uint8)
    needed = np.ones(len(folded), dtype=np.int64)
    for i in range(1, longest):
        needed += folded >= np.uint64(1) << np.uint64(7 * i)
    place = np.arange(longest)
    parts[place < needed[:, None] - 1] |= 128
    return bytes(parts[place < needed[:, None]])


def _ordered(
    table: Columns, names: tuple[str, ...], runs: Sequence[str], every: int
) -> tuple[dict[str, Any], list[Any], Whole]:
    """The rows of the runs, series by series in order of time; the key of each series, and where it starts."""
    place = {run: number for number, run in enumerate(runs)}
    number = np.array([place.get(run, -1) for run in table["run_id"]], dtype=np.int64)
    codes = [np.unique(table[name], return_inverse=True) if len(number) else (np.zeros(0), number) for name in names]
    order = np.lexsort((table["t_us"], *(code for _, code in reversed(codes)), number))
    order = order[number[order] >= 0]
    series = np.stack([number[order], *(code[order] for _, code in codes)], axis=1)
    first = np.ones(len(order), dtype=bool)
    first[1:] = (series[1:] != series[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    if every > 1:
        behind = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        kept = behind % every == 0
        order, first = order[kept], first[kept]
        starts = np.flatnonzero(first)
    keys = [
        (int(number[row]), *(_plain(table[name][row]) for name in names)) for row in (order[start] for start in starts)
    ]
    columns = {name: one[order] for name, one in table.items() if name not in ("run_id", "flow", "interface", "name")}
    return columns, keys, starts


def _acked_rate(own: Mapping[str, Any], starts: Whole) -> npt.NDArray[np.float64]:
    """Mb/s acknowledged in the time ``MEAN_US`` before each sample, or since the first of its series."""
    acked = np.nan_to_num(own["bytes_acked"].astype(np.float64))
    times = own["t_us"].astype(np.float64)
    rates: npt.NDArray[np.float64] = np.zeros(len(times))
    for start, end in pairwise(np.append(starts, len(times))):
        t, total = times[start:end], acked[start:end]
        before = np.minimum(np.searchsorted(t, t - MEAN_US), np.maximum(np.arange(end - start) - 1, 0))
        spans = t - t[before]
        rates[start:end] = np.where(spans > 0, 8 * (total - total[before]) / np.where(spans > 0, spans, 1), 0.0)
    return rates


def _powers(values: Any, starts: Whole) -> Whole:
    """For each series the power of ten as a unit of which its largest value has ``_STATE_DIGITS`` digits."""
    if not len(starts):
        return np.zeros(0, np.int64)
    largest = np.maximum.reduceat(np.abs(values.astype(np.float64)), starts)
    found: Whole = np.floor(np.log10(np.where(largest > 0, largest, 1))).astype(np.int64) + 1 - _STATE_DIGITS
    return found


def _busy(backlog: Any, starts: Whole) -> list[int]:
    """The series of queues that were not empty throughout."""
    if not len(starts):
        return []
    highest = np.maximum.reduceat(np.nan_to_num(backlog.astype(np.float64)), starts)
    return [int(place) for place in np.flatnonzero(highest > 0)]


def _rounded(values: Any, factor: float) -> Whole:
    result: Whole = np.rint(np.nan_to_num(values.astype(np.float64)) * factor).astype(np.int64)
    return result


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
