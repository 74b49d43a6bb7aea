# SPDX-License-Identifier: Apache-2.0
"""``package``: a study's results as one file for an archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longfat.cli.console import Output, say, say_place
from longfat.cli.options import Results, Study
from longfat.cli.report import require_results
from longfat.cli.study import find_study
from longfat.execute.results import open_results
from longfat.report.crate import pack
from longfat.system.cache import HOME


def package(
    out: Output,
    study: Study,
    results: Results = None,
    output: Annotated[Path | None, typer.Option(help="file to write (default: STUDY.crate.zip in the results)")] = None,
) -> None:
    """Pack a study's results as an RO-Crate for an archive, with an artifact appendix."""
    folder = find_study(study)
    with open_results(require_results(folder, results)) as opened:
        target = output or opened.path / f"{folder.name}.crate.zip"
        taken = pack(opened.path, folder, HOME, target)
    size = target.stat().st_size
    say(out, f"files of the study: {', '.join(taken)}")
    say_place(out, f"package of {size / 1e6:.1f} MB", target)
    out.result(study=folder.name, package=str(target), bytes=size, study_files=taken)
