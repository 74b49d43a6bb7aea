# SPDX-License-Identifier: Apache-2.0
"""``try``: algorithms on a path, from one line to curves; the study behind it can be kept."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from longfat.backends.registry import DEFAULT_BACKEND, traits_of
from longfat.cli.console import Output, listen, say, say_place, stage
from longfat.cli.new import make_study
from longfat.cli.options import BackendName, Jobs, algorithms_and_files
from longfat.cli.outcome import expect
from longfat.cli.run import Machine, results_path, run_study
from longfat.cli.study import Choices
from longfat.cli.trial import MOST_FLOWS, MOST_REPETITIONS, QUEUES, TOGETHER, Trial, read_trial, write_trial
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.dataset.load import Dataset, Run, load_dataset
from longfat.execute.results import open_results
from longfat.metrics.data import NoValue, RunData
from longfat.metrics.quantities import Selection, metric_of_run
from longfat.metrics.together import rates_mbps
from longfat.report.numbers import shown
from longfat.spec.units import Duration
from longfat.study.study import Study
from longfat.system.errors import StudyError, all_of

NAME = "try"


def try_(
    out: Output,
    algorithms: Annotated[
        list[str],
        typer.Argument(
            metavar="ALGORITHM...",
            help="algorithms of the kernel, C files tcp_NAME.c, or folders with your programs `send` and `receive`",
            autocompletion=algorithms_and_files,
        ),
    ],
    rate: Annotated[str, typer.Option(help="rate of the bottleneck")] = "100mbit",
    rtt: Annotated[str, typer.Option(help="round-trip time without queueing")] = "50ms",
    buffer: Annotated[str, typer.Option(help="limit of its queue, such as 1bdp, 100 (packets), 150kB or 30ms")] = "",
    queue: Annotated[str, typer.Option(help=f"kind of its queue: {', '.join(QUEUES)}")] = "pfifo",
    loss: Annotated[str, typer.Option(help="share of packets lost at random, such as 0.1%")] = "",
    flows: Annotated[int, typer.Option(help=f"flows of each algorithm, 1 to {MOST_FLOWS}")] = 1,
    together: Annotated[bool, typer.Option("--together", help="all algorithms compete on one path")] = False,
    duration: Annotated[str, typer.Option(help="length of a run, in virtual time")] = "10s",
    repetitions: Annotated[int, typer.Option(help=f"runs of each point, 1 to {MOST_REPETITIONS}")] = 1,
    as_study: Annotated[str, typer.Option(help="keep it as a study with this name, under experiments/")] = "",
    backend: BackendName = DEFAULT_BACKEND,
    jobs: Jobs = None,
) -> bool:
    """Run algorithms on a path and print their curves; several values of an option, such as 10,100mbit, are a sweep."""
    given = {"rate": rate, "rtt": rtt, "buffer": buffer, "queue": queue, "loss": loss, "duration": duration}
    home = results_path(StudyFolder(Path(NAME)), None, backend)
    place = home / "study" / NAME
    with ExitStack() as held:
        results = held.enter_context(open_results(home))
        shutil.rmtree(place.parent, ignore_errors=True)  # by now no other trial uses it
        place.mkdir(parents=True)
        _, trial = all_of(
            lambda: _without_lab(backend),
            lambda: read_trial(algorithms, given, flows, together, repetitions, place),
        )
        folder = StudyFolder(place)
        if as_study:
            folder = make_study(as_study, lambda new: write_trial(trial, as_study, new))
            results = held.enter_context(open_results(results_path(folder, None, backend)))
        events = held.enter_context(listen(results, out))
        run_study(folder, Choices("paper"), Machine(backend, jobs), results, events)
        valid = build_dataset(results.path).valid
        dataset = load_dataset(results.path)
        names = names_of(dataset, trial, folder.study)
        means = list(means_of(dataset, names, Duration.parse(trial.duration).value))
        firsts = {run.run_id: name for name, runs in names.items() for run in runs[:1]}
        if names:
            print_curves(dataset, firsts, out)
            out.print(table_of(means))
        for run in dataset.runs:
            if run.status != "ok":
                say(out, f"{run.scenario}, repetition {run.repetition}, {run.status}: {run.reason}", "red")
        stage(events, "writing the page")
        page = _page(results.path, folder)
    say_place(out, "page", page)
    first = [*firsts, *(run.run_id for run in dataset.runs)][0]
    say(out, _onward(folder, as_study, first[:8]))
    out.result(study=str(folder.path), report=str(page), valid=valid, runs=sorted(firsts), means=means)
    return expect(valid, "some runs failed or are invalid; the page has the reasons")


def _without_lab(backend: str) -> None:
    """Raise StudyError on a backend of a lab."""
    if traits_of(backend).lab:
        hint = f"keep a study with --as-study NAME, then `./just run NAME --backend {backend} --on LAB`"
        raise StudyError(f"trials take no lab, which {backend} needs", where="--backend", hint=hint)


def _page(results: Path, folder: StudyFolder) -> Path:
    from longfat.data.opened import draw_all  # slow to import, so after the curves
    from longfat.relations.judge import judge
    from longfat.report.report import write_report

    judge(results, folder.study, folder.claims, folder.judged_by)
    draw_all(results, folder)
    return write_report(results, folder)


def names_of(dataset: Dataset, trial: Trial, study: Study) -> dict[str, list[Run]]:
    """Return the valid runs by the name of their point: its varied factors, as in the options."""
    found: dict[str, list[Run]] = {}
    labels = {one.id: one.labels for one in study.experiments}
    orders = {"algorithm": tuple(trial.names), **trial.factors}

    def place(run: Run) -> list[float]:
        return [
            values.index(value) if value in values else float(value) if isinstance(value, int) else 0
            for name, values in orders.items()
            for value in [run.factors.get(name, "")]
        ]

    for run in sorted(dataset.runs, key=place):
        if run.status != "ok":
            continue
        words = [str(run.factors["algorithm"])] if "algorithm" in run.factors else [run.experiment]
        words += [
            labels[run.experiment].get(name, {}).get(value, str(value))
            for name, value in run.factors.items()
            if name in trial.factors
        ]
        found.setdefault(" ".join(words), []).append(run)
    return found


def _onward(folder: StudyFolder, as_study: str, run: str) -> str:
    """Return a hint at the next steps."""
    if as_study:
        return f"the study: {folder.path}; change it, then `./just reproduce {as_study}`"
    return f"go on: `./just shell {run}` opens its network; `--as-study NAME` keeps the study behind this command"


WIDTH, ROWS = 60, 2  # characters of a curve
MOST = 6  # most curves of a quantity; the page has all
_BLOCKS = " ▁▂▃▄▅▆▇█"
LABEL = 40  # most characters of a curve's name
COLUMNS = {
    "goodput_mbps": "goodput\nMb/s",
    "utilisation_percent": "utilisation\n%",
    "queueing_delay_ms": "queueing\ndelay ms",
    "retransmissions": "retrans-\nmissions",
    "jain": "Jain's\nindex",
}
"""The means of a trial, with their headings in its table."""
_SINCE_US = 2_000_000.0  # start of the mean utilisation, after slow start, but not after half of the run

_OfRun = Callable[[Run], float]
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
    end = f"{end_s:.3g} s"
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


def means_of(dataset: Dataset, names: Mapping[str, Sequence[Run]], length_us: int) -> Iterator[dict[str, Any]]:
    """Yield the means of each point and of its flows; ``names`` has the point of each run of ``length_us``.

    Goodput of several flows is what they carry while all send: after their ends each empties its buffer alone.
    """

    def of(metric: str, flow: str | None = None, **parameters: float) -> _OfRun:
        return lambda run: metric_of_run(dataset, run, Selection(metric, "", flow=flow, parameters=parameters))

    used, delay = of("utilisation", since=min(_SINCE_US, length_us / 2)), partial(_mean_delay, dataset)
    for name, runs in names.items():
        flows = [row["flow"] for row in dataset.flows.get(runs[0].run_id, ())]
        goodput = of(TOGETHER if len(flows) > 1 else "goodput")
        found: Sequence[_OfRun] = (goodput, used, delay, of("retransmissions"), of("jain"))
        yield {"point": name, **{column: _mean(runs, one) for column, one in zip(COLUMNS, found, strict=True)}}
        for flow in flows if len(flows) > 1 else ():
            own: Mapping[str, _OfRun] = {
                "goodput_mbps": partial(rate_together, dataset, flow),
                "retransmissions": of("retransmissions", flow),
            }
            yield {"point": name, "flow": flow, **{column: _mean(runs, one) for column, one in own.items()}}


def table_of(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of means; only points with few flows have a row for each."""
    table = Table("", box=SIMPLE_HEAD)
    for heading in COLUMNS.values():
        table.add_column(heading, justify="right")
    flows = Counter(row["point"] for row in rows if "flow" in row)
    for row in rows:
        cells = ["" if name not in row else "-" if row[name] is None else shown(row[name]) for name in COLUMNS]
        if "flow" not in row or flows[row["point"]] <= MOST:
            table.add_row(f"  {row['flow']}" if "flow" in row else row["point"], *cells)
    return table


def _mean(runs: Sequence[Run], value: _OfRun) -> float | None:
    values = []
    for run in runs:
        with suppress(NoValue):
            values.append(value(run))
    return sum(values) / len(values) if values else None


def rate_together(dataset: Dataset, flow: str, run: Run) -> float:
    """Return the part of a flow in the rate of all while all send."""
    data = RunData(dataset, run)
    streams = data.streams()
    rates = rates_mbps(list(streams.values()), data.together())[0]
    return float(sum(rate for (name, _), rate in zip(streams, rates, strict=True) if name == flow))


def _mean_delay(dataset: Dataset, run: Run) -> float:
    _, delays = delay_ms(dataset, run.run_id)
    if not len(delays):
        raise NoValue("no queue was sampled")
    return float(delays.mean())
