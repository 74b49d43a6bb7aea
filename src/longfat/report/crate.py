# SPDX-License-Identifier: Apache-2.0
"""Packing of a study's results into one zip file, an RO-Crate 1.1 in the profile Workflow Run Crate 0.5.

Equal results give equal bytes. Source of the profile: https://w3id.org/ro/wfrun/workflow/0.5. Owns the layout of the
archive. Raw records are left out: captures are gigabytes, and every run can be repeated.
"""

from __future__ import annotations

import gzip
import math
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.data.study_folder import MANIFEST, StudyFolder
from longfat.dataset.load import load_dataset
from longfat.figures.drawing import check_figures
from longfat.plan.estimate import run_bytes, run_seconds
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan
from longfat.relations.claims import claim_nouns
from longfat.relations.counting import tally
from longfat.relations.judge import Verdict, read_origin, read_verdicts
from longfat.report.page import render, words
from longfat.study.models import Header
from longfat.system.checksums import verify_checksums
from longfat.system.errors import RigError, StudyError
from longfat.system.files import write_whole
from longfat.system.processes import git
from longfat.system.scratch import scratch_in

SOFTWARE = "software/longfat.tar.gz"
APACHE = "https://spdx.org/licenses/Apache-2.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
_MEDIA = {
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".gz": "application/gzip",
}


@dataclass(frozen=True)
class Part:
    """A file or folder of the package: its place there, its description, and its source."""

    place: str
    what: str
    source: Path


@dataclass(frozen=True)
class About:
    """The subject of a package: its study, its plan, the number of runs in words, the date, and CITATION.cff."""

    header: Header
    plan: Plan
    runs: str
    date: datetime
    citation: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The title of the package."""
        return f"Longfat: results of the study {self.header.study}"

    @property
    def description(self) -> str:
        """The package in two sentences."""
        paper = self.header.paper
        of = f" It reproduces {paper.identifier} ({', '.join(paper.authors)}, {paper.year})." if paper else ""
        return (
            f"{self.header.title}.{of} {self.runs} of `{command(self.plan)}`: dataset, verdicts, figures and report, "
            "with everything that makes them again."
        )


def write_crate(target: Path, about: About, parts: Sequence[Part]) -> None:
    """Copy all parts to the folder ``target`` and write ``ro-crate-metadata.json`` with a preview."""
    crate = ROCrate(version="1.1", gen_preview=True)
    crate.name, crate.description, crate.datePublished = about.name, about.description, about.date
    crate.license = _context(crate, APACHE, {"@type": "CreativeWork", "name": "Apache License 2.0"})
    authors = [
        _context(crate, f"#author-{number}", {"@type": "Organization", "name": author["name"]})
        for number, author in enumerate(about.citation["authors"], start=1)
    ]
    crate.creator = authors
    crate.root_dataset["author"] = authors
    crate.root_dataset["conformsTo"] = [
        _context(crate, url, {"@type": "CreativeWork", "name": name, "version": url.rsplit("/", 1)[1]})
        for url, name in PROFILES.items()
    ]
    entities = {part.place: _part(crate, part) for part in parts}
    crate.mainEntity = workflow = _workflow(crate, about, entities, authors)
    action = crate.add_action(
        workflow,
        identifier="#run",
        object=[entities["results/lock.json"]],
        result=[entity for place, entity in entities.items() if place.startswith("results/") and "lock" not in place],
        properties={
            "name": command(about.plan),
            "description": f"{about.runs} of the lock, then dataset, verdicts, figures and report.",
            "actionStatus": "http://schema.org/CompletedActionStatus",
            "startTime": about.date.isoformat(),
        },
    )
    action["agent"] = authors[0]
    crate.write(target)


def command(plan: Plan) -> str:
    """Return the command that makes the results of a plan; virtual time is its default."""
    backend = plan.pins.get("backend", DEFAULT_BACKEND).replace("+", ",")
    where = "" if backend == DEFAULT_BACKEND else f" --backend {backend}"
    return f"./just reproduce {plan.study} --profile {plan.profile} --stack {plan.stack}{where}"


def _context(crate: ROCrate, identifier: str, properties: Mapping[str, Any]) -> Any:
    return crate.add(ContextEntity(crate, identifier, properties=dict(properties)))


def _part(crate: ROCrate, part: Part) -> Any:
    properties = {"name": part.place, "description": part.what}
    if part.source.is_dir():
        return crate.add_dataset(part.source, f"{part.place}/", properties=properties)
    properties |= {
        "encodingFormat": _MEDIA.get(part.source.suffix, "text/plain"),
        "contentSize": str(part.source.stat().st_size),
    }
    return crate.add_file(part.source, part.place, properties=properties)


def _workflow(crate: ROCrate, about: About, entities: Mapping[str, Any], authors: Sequence[Any]) -> Any:
    """Add the study as the executed workflow, with Longfat as its language."""
    version = str(about.citation["version"])
    program = {
        "@type": ["SoftwareApplication", "ComputerLanguage"],
        "name": "Longfat",
        "alternateName": "Longfat study, format 2",
        "description": about.citation["abstract"],
        "version": version,
        "softwareVersion": version,
    }
    program |= {"downloadUrl": SOFTWARE} if SOFTWARE in entities else {}
    properties = {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": about.header.title,
        "description": "The study's manifest: experiments, factors and settings; it executes nothing itself.",
        "encodingFormat": "application/yaml",
        "license": {"@id": APACHE},
    }
    manifest = Path(entities["study"].source) / "study.yaml"
    workflow = crate.add_file(manifest, "study/study.yaml", properties=properties)
    workflow["programmingLanguage"] = _context(crate, "#longfat", program)
    workflow["author"] = list(authors)
    return workflow


_RESULTS = {
    "report.html": "the report: every claim with its verdict, every figure, offline",
    "verdicts.json": "verdicts with their evidence",
    "claims-first.json": "the claims before the first run",
    "lock.json": "every run, with all its settings and its identity",
    "dataset": "tables of all measurements, described by datapackage.json (Frictionless)",
    "figures": "every figure as SVG and PNG, with its data as CSV",
    "checksums": "checksums of the files of each step",
}
MOST_BYTES = 256 << 20  # of one file of a study
_NEEDED = ("report.html", "verdicts.json", "lock.json", "dataset")
_REPOSITORY = {
    "kernels": "patch series, configuration and pinned source of each kernel",
    "CITATION.cff": "the citation",
    "LICENSE": "licence of everything except the kernel patches",
    "LICENSES": "licence of the kernel patches",
}
_DESCRIPTION = ("ro-crate-metadata.json", "the package described for machines (Workflow Run RO-Crate)")
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest date in a zip file


def pack(results: Path, folder: StudyFolder, repository: Path, target: Path) -> list[str]:
    """Write the package of a study's results to ``target``; return the names of the study's files in it.

    Raises RigError if a step is missing, RecordError if a file was changed since it was made, StudyError if the
    manifest is not the one of the runs.
    """
    if target.suffix != ".zip" or (target.exists() and not target.is_file()):
        raise StudyError("a package is a plain file whose name ends in .zip", where=str(target))
    dataset = load_dataset(results)
    verdicts = read_verdicts(results, folder.path)
    plan = read_lock(results / "lock.json")
    if plan.manifest_sha256 not in ("", folder.digest(MANIFEST)):
        hint = f"`./just run {folder.name}` makes new ones; runs that did not change are kept"
        raise StudyError("the manifest has changed since these runs", where=str(folder.path / MANIFEST), hint=hint)
    needed = (*_NEEDED, "figures") if folder.figures.figures else _NEEDED
    if missing := [name for name in needed if not (results / name).exists()]:
        hint = f"`./just reproduce {folder.name}` makes them"
        raise RigError(f"the results lack {', '.join(missing)}", where=str(results), hint=hint)
    check_figures(results, folder.path)
    verify_checksums(results, "report", folder.path)
    planned = len({run.run_id for run in plan.runs})
    valid = len({run.run_id for run in dataset.runs if run.status == "ok"})
    date = datetime.fromisoformat(read_origin(results).first_time)
    cited = yaml.safe_load((repository / "CITATION.cff").read_text(encoding="utf-8"))
    runs = f"{planned} runs" if valid == planned else f"{valid} of {planned} runs"
    about = About(folder.header, plan, runs, date, cited)
    with scratch_in(Path(tempfile.gettempdir()), "longfat-package-") as scratch:
        taken = copy_study(folder.path, scratch / "study", repository)
        parts = [*_parts(results, scratch / "study", repository), *_software(repository, scratch)]
        text = appendix(folder, plan, verdicts, runs, [*parts, Part(*_DESCRIPTION, scratch)])
        parts.append(_written(scratch, "ARTIFACT.md", "artifact appendix: how to check each claim", text.encode()))
        write_crate(scratch / "crate", about, parts)
        _zip(scratch / "crate", target)
        return taken


def copy_study(study: Path, target: Path, repository: Path) -> list[str]:
    """Copy the files of a study, without hidden files and those that git ignores; return their names.

    Raises StudyError for links, pipes, devices and huge files.
    """
    _copy_plain(study, target, _ignored(study, repository))
    return sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())


def _ignored(study: Path, repository: Path) -> set[Path]:
    """Return the files and folders of a study in the repository that git ignores."""
    if not study.resolve().is_relative_to(repository.resolve()):
        return set()
    words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--", str(study.resolve()))
    with suppress(FileNotFoundError):
        return {
            repository.resolve() / os.fsdecode(name) for name in git(repository, *words).stdout.split(b"\0") if name
        }
    return set()


def _copy_plain(source: Path, target: Path, ignored: Collection[Path]) -> None:
    target.mkdir()
    for path in sorted(path for path in source.iterdir() if path.name[0] != "." and path.name != "__pycache__"):
        if source.resolve() / path.name in ignored:
            continue
        if stat.S_ISDIR(_require_plain(path)):
            _copy_plain(path, target / path.name, ignored)
            continue
        if (size := path.stat().st_size) > MOST_BYTES:
            message = f"the file has {size >> 20} MiB; a package takes files of a study up to {MOST_BYTES >> 20} MiB"
            raise StudyError(message, where=str(path), hint="make it smaller, or move it out of the study")
        shutil.copyfile(path, target / path.name)


def _require_plain(path: Path) -> int:
    """Return the mode of a file or folder. Raises StudyError for anything else, and for a name that is not text."""
    mode = path.lstat().st_mode
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) or not path.name.isprintable():
        message = "a package takes files and folders with printable names, and no link, pipe or device"
        raise StudyError(message, where=repr(str(path))[1:-1], hint="replace it by a file, or move it elsewhere")
    return mode


def _parts(results: Path, study: Path, repository: Path) -> Iterator[Part]:
    """Yield the files and folders that exist before the package."""
    yield Part("study", "manifest, claims, figures, README and evidence of the study", study)
    for root, place, names in ((results, "results/", _RESULTS), (repository, "", _REPOSITORY)):
        for name, what in names.items():
            if (root / name).exists():
                for path in (root / name, *(root / name).rglob("*")) if root == results else ():
                    _require_plain(path)
                    if path.name[0] == ".":
                        raise StudyError("a package has no hidden file", where=str(path), hint="move it elsewhere")
                yield Part(f"{place}{name}", what, root / name)


def _software(repository: Path, scratch: Path) -> Iterator[Part]:
    """Yield a reproducible archive of the files of the commit; nothing outside of a git repository."""
    try:
        source = git(repository, "archive", "--format=tar", "--prefix=longfat/", "HEAD")
        commit = git(repository, "describe", "--always", "--abbrev=40", "--match=", "--dirty=+changes")
    except FileNotFoundError:
        return
    if source.returncode == commit.returncode == 0:
        what = f"Longfat at commit {commit.stdout.decode().strip()}"
        yield _written(scratch, SOFTWARE, what, gzip.compress(source.stdout, mtime=0))


def _written(scratch: Path, place: str, what: str, content: bytes) -> Part:
    path = scratch / Path(place).name
    write_whole(path, content)
    return Part(place, what, path)


def _zip(folder: Path, target: Path) -> None:
    new = target.with_name(f".{target.name}.new")
    try:
        with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                about = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _FIRST_DATE)
                about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
                archive.writestr(about, path.read_bytes())
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def appendix(folder: StudyFolder, plan: Plan, verdicts: Sequence[Verdict], runs: str, parts: Sequence[Part]) -> str:
    """Format ARTIFACT.md: the claims, and the command, time and disk that check each of them.

    It follows the checklist of ACM's badges (Artifact Review and Badging, version 1.1).
    """
    claims = {claim.id: claim for claim in folder.claims}
    counts = tally(one.counted for one in verdicts)["measured"]
    rows = []
    for verdict in verdicts:
        claim = claims[verdict.claim]
        named = [name for one in claim.relations for name in one.experiments(folder.study)] if claim.measured else []
        rows.append((verdict, list(dict.fromkeys(named)), *_cost(plan, set(named))))
    _, minutes, disk = _cost(plan, {run.experiment for run in plan.runs})
    return render(
        "artifact.md.j2",
        study=folder.header.study,
        title=folder.header.title,
        noun=claim_nouns(folder.header)[1],
        plan=plan,
        command=command(plan),
        virtual=plan.pins.get("backend") == DEFAULT_BACKEND,
        runs=runs,
        summary=", ".join(f"{count} {words(word)}" for word, count in counts.items() if count),
        minutes=minutes,
        disk=disk,
        parts=parts,
        rows=rows,
    )


def _cost(plan: Plan, experiments: Collection[str]) -> tuple[int, float, str]:
    """Return number, minutes one after the other (rounded up to tenths) and disk space of the distinct runs.

    Time and space are by the plan's model.
    """
    specs = {run.run_id: run.spec for run in plan.runs if run.experiment in experiments}.values()
    size = sum(map(run_bytes, specs))
    disk = f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{-(-size // 10**6)} MB"
    return len(specs), math.ceil(sum(map(run_seconds, specs)) / 6) / 10, disk
