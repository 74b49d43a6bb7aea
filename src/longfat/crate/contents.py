# SPDX-License-Identifier: Apache-2.0
"""The files of a package: where each comes from, and what it is.

Owns the places in the archive. Raw records are left out: captures are gigabytes, and the lock makes each again.
"""

from __future__ import annotations

import gzip
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from longfat.errors import RigError
from longfat.plan.model import Plan
from longfat.studies import StudyFolder
from longfat.tools import git

SOFTWARE = "software/longfat.tar.gz"
_RESULTS = {
    "report.html": "the report: every claim with its verdict, every figure, offline",
    "verdicts.json": "verdicts with their evidence",
    "claims-first.json": "what decided the claims before the first run",
    "lock.json": "every run, with all its settings and its identity",
    "notebook.ipynb": "the executed notebook",
    "dataset": "tables of all measurements, described by datapackage.json (Frictionless)",
    "figures": "every figure as SVG and PNG, with its data as CSV",
    "seals": "digests of what each step made, and of what",
}
_NEEDED = ("report.html", "verdicts.json", "lock.json", "dataset", "figures")


@dataclass(frozen=True)
class Item:
    """A file or folder of the package: its place there, what it is, and where it lies."""

    place: str
    what: str
    source: Path


def items(results: Path, folder: StudyFolder, plan: Plan, repository: Path) -> list[Item]:
    """All that lies in files already. Raises RigError when a step of the results is missing."""
    missing = [name for name in _NEEDED if not (results / name).exists()]
    if missing:
        hint = f"`longfat reproduce {folder.name}` makes them"
        raise RigError(f"the results lack {', '.join(missing)}", where=str(results), hint=hint)
    found = [Item(f"results/{name}", what, results / name) for name, what in _RESULTS.items()]
    found += [
        Item("study", "manifest, claims, figures, README and evidence of the study", folder.path),
        *_kernels(plan, repository / "kernels"),
        Item("CITATION.cff", "how to cite", repository / "CITATION.cff"),
        Item("LICENSE", "licence of all but the kernel patches", repository / "LICENSE"),
        Item("LICENSES", "licence of the kernel patches", repository / "LICENSES"),
    ]
    return [item for item in found if item.source.exists()]


def _kernels(plan: Plan, kernels: Path) -> Iterator[Item]:
    """The recipes of the kernels that runs pin: patch series, configuration and pinned source."""
    versions = {source.version for source in plan.kernels.values()}
    for path in sorted(kernels.glob("*/source.toml")):
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
        base = kernels / settings.get("base", path.parent.name) / path.name
        series = tomllib.loads(base.read_text(encoding="utf-8"))["series"]
        if any(version == series or version.startswith(f"{series}.") for version in versions):
            what = f"Linux {series}: pinned source, its own patches and configuration"
            yield Item(f"kernels/{path.parent.name}", what, path.parent)
    for name, what in (
        ("series", "names of the patches in their order"),
        ("patches", "patches that all kernels share"),
        ("config", "configuration that all kernels share"),
        ("epochs", "measurements of the kernel regression checks, by which kernels are told apart"),
        ("README.md", "what each patch does, and why"),
    ):
        yield Item(f"kernels/{name}", what, kernels / name)


def software(repository: Path) -> bytes | None:
    """The commit's files as a compressed archive of equal bytes each time; None outside of a git repository."""
    try:
        done = git(repository, "archive", "--format=tar", "--prefix=longfat/", "HEAD")
    except FileNotFoundError:
        return None
    return gzip.compress(done.stdout, mtime=0) if done.returncode == 0 else None


def commit(repository: Path) -> str:
    """The commit, with a note where files differ from it; "" outside of a git repository."""
    try:
        done = git(repository, "describe", "--always", "--abbrev=40", "--match=", "--dirty=+changes")
    except FileNotFoundError:
        return ""
    return done.stdout.decode().strip() if done.returncode == 0 else ""
