# SPDX-License-Identifier: Apache-2.0
"""Numbers and series of each scenario of a dataset, and where two backends agree on them. Pure but for reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longfat.dataset.load import Dataset, Run

SETTLED_US = 1_000_000  # slow start is over
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Quantity:
    """What is compared: a number of each run. A backend agrees with the first when means differ by at most ``allowed``.

    ``allowed`` is a part of the larger mean. It was set before the first comparison: goodput by the share of a packet's
    headers that backends may count differently, windows and queues by what one packet more or less in a hundred makes.
    """

    name: str
    unit: str
    allowed: float
    of: Callable[[Dataset, Run], float]


@dataclass(frozen=True)
class Trace:
    """A series of one run: seconds and values."""

    seconds: Floats
    values: Floats


@dataclass(frozen=True)
class Compared:
    """One quantity of one scenario: its values by backend, a value for each repetition.

    The first backend is what the others are held against.
    """

    scenario: str
    quantity: Quantity
    values: Mapping[str, Sequence[float]]

    @property
    def means(self) -> dict[str, float]:
        """Mean by backend."""
        return {backend: float(np.mean(values)) for backend, values in self.values.items()}

    @property
    def differences(self) -> dict[str, float]:
        """How far each other backend is from the first, as a part of the larger mean."""
        (_, own), *others = self.means.items()
        return {backend: abs(mean - own) / max(mean, own) if max(mean, own) else 0.0 for backend, mean in others}

    @property
    def differing(self) -> tuple[str, ...]:
        """The backends that are farther from the first than allowed."""
        return tuple(name for name, part in self.differences.items() if part > self.quantity.allowed)


def window(dataset: Dataset, run: Run) -> Trace:
    """The congestion window of the first flow in segments over time."""
    first = dataset.flows[run.run_id][0]["flow"]
    samples = dataset.sockets(run.run_id, first)
    return Trace(samples["t_us"] / 1e6, samples["cwnd_segments"].astype(np.float64))


def queue(dataset: Dataset, run: Run) -> Trace:
    """The longest queue of the run in packets over time: that of the bottleneck."""
    by_interface = dataset.queues(run.run_id)
    longest = max(by_interface.values(), key=lambda series: float(np.mean(series.values)))
    return Trace(longest.t_us / 1e6, longest.values)


def _settled(trace: Trace) -> Floats:
    values: Floats = trace.values[trace.seconds * 1e6 >= SETTLED_US]
    return values


def _goodput(dataset: Dataset, run: Run) -> float:
    return float(sum(flow["goodput_bps"] for flow in dataset.flows[run.run_id])) / 1e6


def _window_of_all(dataset: Dataset, run: Run) -> float:
    """Mean of the flows' windows together: who has how much of the queue is chance."""
    samples = dataset.sockets(run.run_id)
    times, windows = samples["t_us"], samples["cwnd_segments"].astype(np.float64)
    sums = [float(np.sum(windows[times == t_us])) for t_us in np.unique(times[times >= SETTLED_US])]
    return float(np.mean(sums))


def _swing(dataset: Dataset, run: Run) -> float:
    """How far the window goes up and down: from its 5th to its 95th percentile."""
    low, high = np.percentile(_settled(window(dataset, run)), (5, 95))
    return float(high - low)


QUANTITIES = (
    Quantity("goodput of all flows", "Mb/s", 0.02, _goodput),
    Quantity("mean window of all flows", "segments", 0.1, _window_of_all),
    Quantity("swing of the window of flow 1", "segments", 0.2, _swing),
    Quantity("mean queue at the bottleneck", "packets", 0.1, lambda d, r: float(np.mean(_settled(queue(d, r))))),
)


def compare(datasets: Mapping[str, Dataset]) -> list[Compared]:
    """Every quantity of every scenario that at least two backends have valid runs of."""
    found: dict[str, dict[str, list[Run]]] = {}
    for backend, dataset in datasets.items():
        for run in dataset.runs:
            if run.status == "ok":
                found.setdefault(run.scenario, {}).setdefault(backend, []).append(run)
    return [
        Compared(scenario, quantity, {b: [quantity.of(datasets[b], run) for run in runs] for b, runs in own.items()})
        for scenario, own in sorted(found.items())
        if len(own) > 1
        for quantity in QUANTITIES
    ]
