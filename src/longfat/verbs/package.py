# SPDX-License-Identifier: Apache-2.0
"""``package``: a study's results as one file for an archive."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from longfat.crate.pack import pack
from longfat.execute.results import open_results
from longfat.plan.lockfile import require_study
from longfat.verbs.places import repository_root
from longfat.verbs.run import results_path
from longfat.verbs.say import print_json, say_place
from longfat.verbs.study import find_study

FORMAT = 1


def package(name: str, given: Path | None, output: Path | None, console: Console, *, as_json: bool = False) -> bool:
    """Write the package, and say where it is and how large."""
    folder = find_study(name)
    with open_results(results_path(folder, given)) as results:
        require_study(results.lock, folder.header.study)
        target = output or results.path / f"{folder.name}.crate.zip"
        pack(results.path, folder, repository_root(), target)
    size = target.stat().st_size
    say_place(console, f"package of {size / 1e6:.1f} MB", target)
    if as_json:
        print_json({"format": FORMAT, "study": folder.name, "package": str(target), "bytes": size})
    return True
