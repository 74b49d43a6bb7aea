# SPDX-License-Identifier: Apache-2.0
"""Curves and numbers of runs in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from longfat.cli.console import say
from longfat.dataset.load import Dataset, Run
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Selection, metric_of_run
from longfat.report.numbers import shown

WIDTH, ROWS = 60, 2  # characters of a curve
MOST = 6  # most curves of a quantity; the page has all
_BLOCKS = " ▁▂▃▄▅▆▇█"
LABEL = 24  # most characters of a curve's name
_SINCE_US = 2_000_000.0  # start of the mean utilisation, after slow start
_OF_A_FLOW = ("goodput", "retransmissions")
_COLUMNS: Mapping[str, Selection | None] = {
    "goodput\nMb/s": Selection("goodput", ""),
    "utilisation\n%": Selection("utilisation", "", parameters={"since": _SINCE_US}),
    "queueing\ndelay ms": None,
    "retrans-\nmissions": Selection("retransmissions", ""),
    "Jain's\nindex": Selection("jain", ""),
}

Numbers = npt.NDArray[np.float64]
Curves = dict[str, dict[str, Numbers]]  # by quantity, then by run and flow


def print_curves(dataset: Dataset, names: Mapping[str, str], console: Console) -> None:
    """Print window, rate and queueing delay over time; ``names`` has the names of the runs by run_id."""
    end_s, curves = curves_of(dataset, names)
    width = min(max((len(name) for found in curves.values() for name in found), default=0), LABEL)
    for quantity, found in curves.items():
        top = max((float(values.max()) for values in found.values()), default=0.0)
        say(console, f"{quantity}, 0 to {shown(top)}", "bold")
        for name, values in [*found.items()][:MOST]:
            for row, line in enumerate(lines_of(values, top)):
                label = name[:width] if row == ROWS - 1 else ""
                say(console, f"  {label:<{width}}  {line}".rstrip())
    end = f"{end_s:.0f} s"
    say(console, f"  {'':<{width}}  0{end:>{WIDTH - 1}}")
    if (most := max(map(len, curves.values()), default=0)) > MOST:
        say(console, f"  the first {MOST} of {most} curves; the page has all")


def lines_of(values: Numbers, top: float) -> Iterator[str]:
    """Yield the rows of a curve from top to bottom, with a character for each value from 0 to ``top``."""
    steps = np.rint(values / (top or 1.0) * (len(_BLOCKS) - 1) * ROWS).astype(int)
    for row in reversed(range(ROWS)):
        yield "".join(_BLOCKS[min(max(step - row * 8, 0), 8)] for step in steps).rstrip()


def curves_of(dataset: Dataset, names: Mapping[str, str]) -> tuple[float, Curves]:
    """Return the end in seconds, and the curves until then, with ``WIDTH`` values each."""
    ends = [row["end_us"] for run_id in names for row in dataset.flows.get(run_id, ()) if row["end_us"]]
    delays = {run_id: delay_ms(dataset, run_id) for run_id in names}
    edges = np.linspace(0.0, max([*ends, *(t_us[-1] for t_us, _ in delays.values() if len(t_us)), 1.0]), WIDTH + 1)
    found: Curves = {"congestion window (segments)": {}, "acknowledged rate (Mb/s)": {}, "queueing delay (ms)": {}}
    windows, rates, queues = found.values()
    for run_id, name in names.items():
        flows = [row["flow"] for row in dataset.flows.get(run_id, ())]
        for flow in flows:
            samples = dataset.sockets(run_id, flow)
            first = samples["stream"] == 0
            t_us, cwnd, acked = (samples[one][first].astype(float) for one in ("t_us", "cwnd_segments", "bytes_acked"))
            if len(t_us) == 0:
                continue
            label = name if len(flows) == 1 else f"{name} {flow}"
            windows[label] = _means(t_us, cwnd, edges)
            rates[label] = 8 * np.diff(np.interp(edges, t_us, acked)) / np.diff(edges)
        queues[name] = _means(*delays[run_id], edges)
    return edges[-1] / 1e6, found


def delay_ms(dataset: Dataset, run_id: str) -> tuple[Numbers, Numbers]:
    """Return times in microseconds, and the queueing delay at the slowest port in milliseconds."""
    ports = dataset.columns_of("queues", run_id)
    rate = ports["rate_bps"].astype(float)
    slowest = (rate > 0) & (rate == np.min(rate, where=rate > 0, initial=np.inf))
    return ports["t_us"][slowest].astype(float), 8000 * ports["backlog_bytes"][slowest].astype(float) / rate[slowest]


def _means(t_us: Numbers, values: Numbers, edges: Numbers) -> Numbers:
    """Return the mean of the samples between consecutive edges, interpolated if there are none."""
    if len(t_us) == 0:
        return np.zeros(len(edges) - 1)
    count, _ = np.histogram(t_us, edges)
    total, _ = np.histogram(t_us, edges, weights=values)
    means: Numbers = np.interp((edges[1:] + edges[:-1]) / 2, t_us, values)
    np.divide(total, count, out=means, where=count > 0)
    return means


def table_of(dataset: Dataset, names: Mapping[str, Sequence[Run]]) -> Table:
    """Return a table of means with a row for each point; ``names`` has the point of each run."""
    table = Table("", box=SIMPLE_HEAD)
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    for name, runs in names.items():
        table.add_row(name, *(_cell(dataset, runs, selection) for selection in _COLUMNS.values()))
        flows = [row["flow"] for row in dataset.flows.get(runs[0].run_id, ())]
        for flow in flows if 1 < len(flows) <= MOST else ():
            own = (replace(one, flow=flow) if one and one.metric in _OF_A_FLOW else None for one in _COLUMNS.values())
            table.add_row(f"  {flow}", *(_cell(dataset, runs, selection) if selection else "" for selection in own))
    return table


def _cell(dataset: Dataset, runs: Sequence[Run], selection: Selection | None) -> str:
    """Return the mean of a metric, or of the queueing delay, as text."""
    values = []
    for run in runs:
        with suppress(NoValue):
            values.append(metric_of_run(dataset, run, selection) if selection else _mean_delay(dataset, run))
    return shown(sum(values) / len(values)) if values else "-"


def _mean_delay(dataset: Dataset, run: Run) -> float:
    _, delays = delay_ms(dataset, run.run_id)
    if not len(delays):
        raise NoValue("no queue was sampled")
    return float(delays.mean())
