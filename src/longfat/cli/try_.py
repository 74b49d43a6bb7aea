# SPDX-License-Identifier: Apache-2.0
"""``try``: algorithms on a path, from one line to curves; the study behind it can be kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.cli.chart import print_curves, table_of
from longfat.cli.console import Output, listen, say, say_place, stage
from longfat.cli.new import make_study
from longfat.cli.options import BackendName, Jobs, algorithms_and_files
from longfat.cli.outcome import expect
from longfat.cli.paths import repository_root
from longfat.cli.run import Machine, results_path, run_study
from longfat.cli.study import Choices
from longfat.cli.trial import QUEUES, Trial, read_trial, write_trial
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.dataset.load import Dataset, Run, load_dataset
from longfat.execute.results import open_results
from longfat.spec.units import Duration, Rate, Ratio
from longfat.study.queues.limit import Products

NAME = "try"
_UNITS = {"rate": Rate, "rtt": Duration, "loss": Ratio, "buffer": Products}


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
    flows: Annotated[int, typer.Option(min=1, max=16, help="flows of each algorithm")] = 1,
    together: Annotated[bool, typer.Option("--together", help="all algorithms compete on one path")] = False,
    duration: Annotated[str, typer.Option(help="length of a run, in virtual time")] = "10s",
    repetitions: Annotated[int, typer.Option(min=1, max=100, help="runs of each point")] = 1,
    as_study: Annotated[str, typer.Option(help="keep it as a study with this name, under experiments/")] = "",
    backend: BackendName = DEFAULT_BACKEND,
    jobs: Jobs = None,
) -> bool:
    """Run algorithms on a path and print their curves; several values of an option, such as 10,100mbit, are a sweep."""
    given = {"rate": rate, "rtt": rtt, "buffer": buffer, "queue": queue, "loss": loss, "duration": duration}
    place = repository_root() / "results" / NAME / "study" / NAME
    shutil.rmtree(place.parent, ignore_errors=True)
    place.mkdir(parents=True)
    trial = read_trial(algorithms, given, flows, together, repetitions, place)
    folder = make_study(as_study, lambda new: write_trial(trial, as_study, new)) if as_study else StudyFolder(place)
    with open_results(results_path(folder, None, backend)) as results, listen(results, out) as events:
        run_study(folder, Choices("paper"), Machine(backend, jobs), results, events)
        valid = build_dataset(results.path).valid
        dataset = load_dataset(results.path)
        names = names_of(dataset, trial)
        firsts = {run.run_id: name for name, runs in names.items() for run in runs[:1]}
        if names:
            print_curves(dataset, firsts, out)
            out.print(table_of(dataset, names))
        for run in dataset.runs:
            if run.status != "ok":
                say(out, f"{run.scenario}, repetition {run.repetition}, {run.status}: {run.reason}", "red")
        stage(events, "writing the page")
        page = _page(results.path, folder)
    say_place(out, "page", page)
    say(out, _onward(folder, as_study, next(iter(firsts), "RUN")[:8]))
    out.result(study=str(folder.path), report=str(page), valid=valid, runs=sorted(firsts))
    return expect(valid, "some runs failed or are invalid; the page has the reasons")


def _page(results: Path, folder: StudyFolder) -> Path:
    from longfat.data.opened import draw_all  # slow to import, so after the curves
    from longfat.relations.judge import judge
    from longfat.report.report import write_report

    judge(results, folder.study, folder.claims, folder.judged_by)
    draw_all(results, folder)
    return write_report(results, folder)


def names_of(dataset: Dataset, trial: Trial) -> dict[str, list[Run]]:
    """Return the valid runs by the name of their point: its varied factors, as in the options."""
    found: dict[str, list[Run]] = {}
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
            str(_UNITS[name](value)) if name in _UNITS and isinstance(value, int) else str(value)
            for name, value in run.factors.items()
            if name in trial.factors
        ]
        found.setdefault(" ".join(words), []).append(run)
    return found


def _onward(folder: StudyFolder, as_study: str, run: str) -> str:
    """Return a hint at the next steps."""
    if as_study:
        return f"the study: {folder.path}; change it, then `longfat reproduce {as_study}`"
    return f"go on: `longfat shell {run}` opens its network; `--as-study NAME` keeps the study behind this command"
