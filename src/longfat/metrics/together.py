# SPDX-License-Identifier: Apache-2.0
"""The rates of connections while all flows of a run send.

Rates are acknowledged rates, interpolated linearly between samples of the sending socket.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longfat.metrics.data import Array, Connections, NoValue, Samples, Span, Together
from longfat.metrics.registry import metric


def rates_mbps(connections: Sequence[Samples], span: Span, interval_us: float | None = None) -> Array:
    """Return Mb/s of each connection (columns) in each whole interval of the span (rows), by default one interval.

    If the end of a connection was not sampled, the span ends with its last sample. Raises NoValue if the span is too
    short.
    """
    span = Span(span.start_us, min([span.end_us, *(one.t_us[-1] for one in connections if not one.end)]))
    length = span.end_us - span.start_us
    count = 1 if interval_us is None else int(length // interval_us)
    if length <= 0 or count < 1:
        raise NoValue(f"all flows send together for {max(length, 0) / 1e6:g} s, less than an interval")
    edges = span.start_us + (length if interval_us is None else interval_us) * np.arange(count + 1, dtype=np.float64)
    steps = [np.diff(one.acked_by(edges)) for one in connections]
    return 8 * np.array(steps, dtype=np.float64).T / np.diff(edges)[:, np.newaxis]


@metric("Mb/s", "aggregate throughput while all flows send", bounds=(0, np.inf), name="together")
def together_mbps(connections: Connections, span: Together) -> float:
    """Aggregate rate of all connections in Mb/s (10^6 bit/s) while all flows send."""
    return float(rates_mbps(connections, span).sum())
