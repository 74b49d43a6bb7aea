# SPDX-License-Identifier: Apache-2.0
"""Build the documentation as a site: python docs/site/build.py FOLDER [STUDY...].

The site has the documents where the repository has them, so that their links work, and in ``results/`` a report of the
committed evidence of each study, or of those named, the kept cards, and a front page. A broken link ends the build. No
network is needed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from longfat.cli.evaluate import CARDS, in_order
from longfat.cli.report import write_from_evidence
from longfat.cli.study import known_baselines
from longfat.data.study_folder import MANIFEST, StudyFolder, studies_in
from longfat.metrics.reference import reference as metrics
from longfat.report.card.card import read_cards
from longfat.report.card.document import FILE, card_document
from longfat.report.card.page import draw_card, draw_matrix
from longfat.report.front import write_front
from longfat.report.report import REPORT
from longfat.study.schema.names import require
from longfat.study.study_schema import reference as keys

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORKER = "frame-worker.js"  # lets the search work on pages opened from the disk
SHIM = "https://unpkg.com/iframe-worker/shim"  # the theme's address of such a file, which would need a network
FILES = re.compile(r'(<span class="files">).*?(</span>)')  # links of a report to its results
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
REPORTS = '\n<a href="results/index.html">All studies, with reports, cards and the gallery</a>\n\n## '
DOCUMENTS = (
    "*.md",
    "docs/**/*.md",
    "experiments/**/*.md",
    "images/*.md",
    "kernels/*.md",
    "LICENSES/*.md",
    "infra/**/*.md",
)

TABLES = {"docs/manifest.md": keys, "docs/metrics.md": metrics}
"""Pages that have generated tables at their end."""

NAV = {
    "Start": ("README.md", "docs/quickstart.md", "docs/findings.md"),
    "Tutorials": ("docs/own-study.md", "docs/own-algorithm.md"),
    "Studies": ("experiments/*/README.md", "experiments/*/VERDICTS.md", "experiments/**/*.md"),
    "How to": ("docs/data.md", "docs/evidence.md", "docs/machines.md", "docs/extending.md"),
    "Explanation": ("docs/verdicts.md", "docs/virtual-time.md", "docs/limitations.md", "docs/threat-model.md"),
    "Reference": ("docs/manifest.md", "docs/claims.md", "docs/metrics.md", "docs/glossary.md"),
    "Project": ("*.md", "kernels/*.md", "images/*.md", "infra/**/*.md", "LICENSES/*.md"),
}
"""Order of the pages. A page that several patterns match is where the first pattern puts it."""


def build(target: Path, names: Sequence[str]) -> int:
    """Write the site with reports of the studies ``names``, by default of all; return the exit status of mkdocs."""
    known = [*studies_in(ROOT / "experiments"), *studies_in(ROOT / "experiments" / "gallery")]
    studies = [named(known, name) for name in names] or known
    with tempfile.TemporaryDirectory(prefix="longfat-docs-") as scratch:
        pages = Path(scratch) / "pages"
        assemble(pages)
        config = yaml.safe_load((HERE / "mkdocs.yml").read_text(encoding="utf-8"))
        config |= {"docs_dir": str(pages), "site_dir": str(target.resolve()), "nav": list(nav(pages))}
        file = Path(scratch) / "mkdocs.yml"
        file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(file)]
        quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, check=False, env=quiet, capture_output=True, text=True)
    sys.stderr.write("".join(f"{line}\n" for line in done.stderr.splitlines() if not line.startswith("INFO")))
    if done.returncode:
        return done.returncode
    for path in target.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(SHIM, os.path.relpath(target / WORKER, path.parent)), encoding="utf-8")
    shutil.copyfile(HERE / WORKER, target / WORKER)
    add_reports(target.resolve(), studies)
    return 0


def named(studies: Sequence[StudyFolder], name: str) -> StudyFolder:
    """Return the study of this name. Raises StudyError if there is none."""
    require("study", name, [study.name for study in studies])
    return next(study for study in studies if study.name == name)


def add_reports(target: Path, studies: Sequence[StudyFolder]) -> None:
    """Write reports of the committed evidence, kept cards and the front page, with links to pages of the site."""
    results = target / "results"
    for study in studies:
        manifest = target / study.path.relative_to(ROOT) / MANIFEST
        manifest.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(study.path / MANIFEST, manifest)
        places = report_places(study)
        others = (f' <a href="../{place}/{REPORT}">stack {stack}</a>' for stack, place in places.items())
        links = '<a href="../index.html">all studies</a>'
        links += f' <a href="../../experiments/{study.name}/index.html">README of the study</a>'
        links += "".join(others) if len(places) > 1 else ""
        for stack, place in places.items():
            with tempfile.TemporaryDirectory(prefix="longfat-report-") as scratch:
                report = write_from_evidence(Path(scratch) / study.name, study, stack)
                text = FILES.sub(rf"\1{links}\2", report.read_text(encoding="utf-8"), count=1)
            (results / place).mkdir(parents=True, exist_ok=True)
            (results / place / REPORT).write_text(text, encoding="utf-8")
        if study.has(FILE):
            place = results / study.name
            cards, document = in_order(read_cards(study.path / CARDS)), card_document(study)
            (place / CARDS).mkdir(parents=True, exist_ok=True)
            for card in cards:
                draw_card(card, document, place / CARDS)
            draw_matrix(cards, document, place / CARDS)
    front = write_front(results, studies, known_baselines())
    text = front.read_text(encoding="utf-8").replace(os.path.relpath(ROOT / "experiments", results), "../experiments")
    front.write_text(text.replace('/README.md"', '/index.html"').replace('.md"', '.html"'), encoding="utf-8")


def report_places(study: StudyFolder) -> dict[str, str]:
    """Return the folder of the report of each stack with evidence; the study's own stack comes first."""
    own = study.header.stack
    stacks = {path.name for path in (study.path / "evidence").glob("*/*")}
    ordered = sorted(stacks, key=lambda stack: (stack != own, stack))
    return {stack: study.name if stack == own else f"{study.name}-{stack}" for stack in ordered}


def assemble(pages: Path) -> None:
    """Copy all documents and the files that they link to, each to its place in the repository."""
    documents = [path for pattern in DOCUMENTS for path in ROOT.glob(pattern)]
    linked = [(path.parent / link).resolve() for path in documents for link in LINK.findall(path.read_text("utf-8"))]
    for path in {*documents, *linked}:
        if path.is_file():
            place = pages / path.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    readme = pages / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8").replace("\n## ", REPORTS, 1), encoding="utf-8")
    for page, tables in TABLES.items():
        with (pages / page).open("a", encoding="utf-8") as file:
            file.write(f"\n{tables()}")


def nav(pages: Path) -> Iterator[dict[str, list[str]]]:
    """Yield the sections with their pages."""
    known: set[str] = set()
    for section, patterns in NAV.items():
        found = [str(path.relative_to(pages)) for pattern in patterns for path in sorted(pages.glob(pattern))]
        own = [name for name in dict.fromkeys(found) if name not in known]
        known.update(own)
        if own:
            yield {section: own}


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]), sys.argv[2:]))
