# SPDX-License-Identifier: Apache-2.0
"""Makes the package: all its parts in one zip file, which is equal for equal results."""

from __future__ import annotations

import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from longfat.crate.appendix import appendix
from longfat.crate.contents import SOFTWARE, Item, commit, items, software
from longfat.crate.facts import read_facts
from longfat.crate.metadata import citation, write_crate, zenodo
from longfat.dataset.load import load_dataset
from longfat.errors import RigError
from longfat.figures.drawing import check_figures
from longfat.files import write_whole
from longfat.plan.lockfile import read_lock
from longfat.relations.judge import read_origin, read_verdicts
from longfat.scratch import scratch_in
from longfat.seals import check_seal
from longfat.studies import StudyFolder

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip file can have
_OWN = (
    ("ARTIFACT.md", "this appendix"),
    (".zenodo.json", "the archive's form, filled in"),
    ("ro-crate-metadata.json", "the package described for machines (Workflow Run RO-Crate)"),
)


def pack(results: Path, folder: StudyFolder, repository: Path, target: Path) -> None:
    """Write the package of a study's results to ``target``.

    Raises RigError when a step is missing or nothing can be written, RecordError when a file is not as it was made.
    """
    dataset = load_dataset(results)
    verdicts = read_verdicts(results, folder.path)
    plan = read_lock(results / "lock.json")
    parts = items(results, folder, plan, repository)
    check_figures(results, folder.path)
    check_seal(results, "report", folder.path)
    facts = read_facts(plan, results, dataset)
    published = facts.ended or datetime.fromisoformat(read_origin(results).first_time).replace(tzinfo=UTC)
    cited = citation(repository)
    with scratch_in(Path(tempfile.gettempdir()), "longfat-package-") as scratch:
        drafts = scratch / "drafts"
        drafts.mkdir()
        source = software(repository)
        if source is not None:
            what = f"Longfat at commit {commit(repository)}, as `git archive` has it"
            parts.append(_drafted(drafts, SOFTWARE, what, source))
        listed = [*((part.place, part.what) for part in parts), *_OWN]
        text = appendix(folder.header, facts, facts.tested(folder, verdicts), listed)
        parts.append(
            _drafted(drafts, "ARTIFACT.md", "artifact appendix: each claim's command, time and disk", text.encode())
        )
        parts.append(_drafted(drafts, ".zenodo.json", _OWN[1][1], zenodo(folder.header, facts, cited).encode()))
        write_crate(scratch / "crate", folder.header, facts, parts, published, cited)
        try:
            _zip(scratch / "crate", target)
        except OSError as error:
            raise RigError(f"cannot write the package: {error}", where=str(target)) from error


def _drafted(folder: Path, place: str, what: str, content: bytes) -> Item:
    path = folder / Path(place).name
    write_whole(path, content)
    return Item(place, what, path)


def _zip(folder: Path, target: Path) -> None:
    new = target.with_name(f".{target.name}.new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            about = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EPOCH)
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(about, path.read_bytes())
    new.replace(target)
