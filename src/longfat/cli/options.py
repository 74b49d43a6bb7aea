# SPDX-License-Identifier: Apache-2.0
"""Options and arguments that several commands share: each has one meaning everywhere."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from longfat.backends.registry import backend_names
from longfat.cli.paths import study_names
from longfat.study.catalog.ccas import CCAS
from longfat.study.catalog.stacks import STACKS
from longfat.system.errors import StudyError


def _completed(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion: the names with the given beginning."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _run_names() -> list[str]:
    from longfat.cli.find_run import run_names  # slow to import, and few completions need it

    return run_names()


def _parts_of_study(incomplete: str) -> list[str]:
    """Return the artifacts and experiments with this beginning, of the study that the command line names.

    The parser stops at the option without a value, so the study is found among the words that the shell passes.
    """
    from longfat.cli.study import find_study  # slow to import

    before, _, name = incomplete.rpartition(",")
    try:
        words = os.environ.get("COMP_WORDS", "").split()
        study = find_study(next((word for word in words if word in study_names()), ""))
        known = dict.fromkeys([*study.experiments_by_artifact(), *(one.id for one in study.study.experiments)])
    except StudyError:
        return []
    return [f"{before},{one}".lstrip(",") for one in known if one.startswith(name)]


def algorithms_and_files(incomplete: str) -> list[str]:
    """Return the algorithms, C files and folders with this beginning."""
    files = [str(path) for path in Path().glob(f"{glob.escape(incomplete)}*") if path.is_dir() or path.suffix == ".c"]
    return [*_completed(lambda: CCAS)(incomplete), *sorted(files)]


STUDY_HELP = "name under experiments/, or path of a folder with study.yaml"

Study = Annotated[
    str, typer.Argument(metavar="STUDY", help=STUDY_HELP, autocompletion=_completed(study_names), show_default=False)
]
MaybeStudy = Annotated[
    str | None, typer.Argument(metavar="STUDY", help=STUDY_HELP, autocompletion=_completed(study_names))
]
Studies = Annotated[
    list[str] | None, typer.Argument(metavar="STUDY...", help=STUDY_HELP, autocompletion=_completed(study_names))
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="first digits of a run's id, or the name or path of its folder",
        autocompletion=_completed(_run_names),
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN|STUDY", help="run or study", autocompletion=_completed(lambda: [*study_names(), *_run_names()])
    ),
]

Profile = Annotated[Literal["smoke", "quick", "steady", "paper"], typer.Option(help="size of the study")]
Only = Annotated[
    str,
    typer.Option(help="comma-separated ids of artifacts or experiments", autocompletion=_parts_of_study),
]
Stack = Annotated[
    str | None, typer.Option(help="stack profile instead of the study's own", autocompletion=_completed(lambda: STACKS))
]
Seed = Annotated[int | None, typer.Option(min=0, help="seed instead of the study's own")]
BackendName = Annotated[
    str,
    typer.Option("--backend", help=f"one of {', '.join(backend_names())}", autocompletion=_completed(backend_names)),
]
Backends = Annotated[
    str | None,
    typer.Option(
        "--backend",
        help="backend, or comma-separated backends to compare (default: the study's, else virtual)",
        autocompletion=_completed(backend_names),
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="runs at a time (default: one for each CPU)")]
Results = Annotated[Path | None, typer.Option(help="results folder (default: results/STUDY)")]
InResults = Annotated[Path | None, typer.Option("--results", help="results folder of the run (default: all)")]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="where runs are executed: a lab (with a backend of real hosts), slurm, ssh:HOST,..., "
        "kubernetes:image=IMAGE or tls://HOST:PORT: docs/machines.md",
    ),
]
Watch = Annotated[bool, typer.Option("--watch", help="serve a live page on this machine while runs come in")]
Every = Annotated[bool, typer.Option("--all", help="print every claim, not only those that need attention")]
EveryClaim = Annotated[bool, typer.Option("--all", help="print the claims of all studies")]
Papers = Annotated[
    bool, typer.Option("--paper-figures", help="also write each figure as a PDF for a column of a paper")
]
Json = Annotated[bool, typer.Option("--json", help="print the result as JSON, and all else to standard error")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print no progress, only warnings and the result")]
NewBaseline = Annotated[bool, typer.Option("--new-baseline", help="begin a baseline with this kernel, image and code")]
Repetitions = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="repetitions of each scenario (default: the study's stated number, or the profile's if larger)",
    ),
]
Budget = Annotated[str | None, typer.Option(help="wall time, such as 45min or 2h, after which nothing new begins")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")]
