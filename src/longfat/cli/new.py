# SPDX-License-Identifier: Apache-2.0
"""``new``: the folder of a new study, from the files in ``template``, where NAME is the study's name.

The first line of each file names its JSON Schema for editors with yaml-language-server. The schemas are files next to
``experiments``, so that editors need neither a network nor this program.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from longfat.cli.check import File, schema_of
from longfat.cli.console import Output, say
from longfat.cli.paths import repository_root
from longfat.data.study_folder import CLAIMS, FIGURES, MANIFEST, StudyFolder
from longfat.system.errors import StudyError

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,63}")
_OWN = ("again", "fill", "kernel-check", "pcap", "try", "verify")  # folders of results/ that are no study's
_FILES: Mapping[str, File] = {MANIFEST: "study", CLAIMS: "claims", FIGURES: "figures"}
SCHEMAS = ".schemas"  # the folder of the schemas, next to experiments/
_TEMPLATE = Path(__file__).with_name("template")


def new(
    out: Output,
    name: Annotated[str, typer.Argument(help="name of the study, and of its folder under experiments/")],
) -> None:
    """Make the folder of a new study, which runs without changes and has comments on what to change."""
    folder = make_study(name, lambda place: _write_template(name, place))
    say(out, f"{folder.path}: {', '.join(_FILES)}; change them, then `./just reproduce {name}`")
    out.result(study=name, folder=str(folder.path), files=[*_FILES])


def make_study(name: str, write: Callable[[Path], object]) -> StudyFolder:
    """Make the folder of a study, which must not exist, and write its files. Raises StudyError."""
    if not _NAME.fullmatch(name):
        hint = "lower-case letters, digits, '_', '-' and '.'; the folder is made under experiments/"
        raise StudyError(f"{name!r} is not a valid name of a study", hint=hint)
    if name in _OWN:
        raise StudyError(f"results/{name} has other results than a study's", hint="choose another name")
    folder = repository_root() / "experiments" / name
    made = False
    try:
        folder.mkdir(parents=True)
        made = True
        write(folder)
    except OSError as error:
        if not made and isinstance(error, FileExistsError):
            raise StudyError(f"there is a study {name!r}", where=str(folder), hint="choose another name") from error
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        where = str(error.filename or folder)
        raise StudyError(f"the study cannot be written: {error.strerror}", where=where) from error
    return StudyFolder(folder)


def _write_template(name: str, folder: Path) -> None:
    schemas = repository_root() / SCHEMAS
    schemas.mkdir(exist_ok=True)
    for file, kind in _FILES.items():
        schema = schemas / f"{kind}.json"
        schema.write_text(json.dumps(schema_of(kind), indent=1) + "\n", encoding="utf-8")
        text = (_TEMPLATE / file).read_text(encoding="utf-8").partition("\n")[2]  # without the licence
        line = f"# yaml-language-server: $schema=../../{SCHEMAS}/{schema.name}\n"
        (folder / file).write_text(line + text.replace("NAME", name), encoding="utf-8")
