# SPDX-License-Identifier: Apache-2.0
"""Checks of a YAML file next to study.yaml: one list of named entries, with all problems at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from longfat.study.schema.explain import explain
from longfat.study.schema.names import Finding, Path
from longfat.study.schema.source import Source
from longfat.system.errors import StudyError

Model = TypeVar("Model", bound=BaseModel)


def document_of(
    source: Source,
    model: type[Model],
    section: str,
    key: str,
    check: Callable[[Model], Iterable[Finding]],
    context: Mapping[str, str] | None = None,
) -> Model:
    """Return the model of a YAML file whose ``section`` is a list of entries named by ``key``.

    ``check`` yields further findings; ``context`` is for the model's validators.

    Raises StudyError with all problems, each with file, line and key.
    """
    if not isinstance(source.data, dict):
        raise StudyError("the file is not a mapping of keys to values", where=source.file)
    entries, one = source.data.get(section), section.removesuffix("s")
    findings = [*source.findings, *repeated(entries, one, (section,), key)]
    document: Model | None = None
    try:
        document = model.model_validate(source.data, context=context)
    except ValidationError as error:
        findings += explain(error, model)
    if document is not None:
        findings += check(document)
    if findings or document is None:
        raise refused(source, findings, FilePath(source.file).name)
    return document


def refused(source: Source, findings: Iterable[Finding], what: str) -> StudyError:
    """Return the error with all problems of a file, by line; ``what`` names the file."""
    problems = sorted(map(source.problem, dict.fromkeys(findings)), key=lambda problem: problem.line or 0)
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return StudyError(f"{what} has {count}", problems=tuple(problems))


def repeated(entries: object, what: str, section: Path, key: str) -> Iterator[Finding]:
    """Yield a finding for each entry of a list with the name of an earlier one."""
    seen: set[str] = set()
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        name = entry.get(key) if isinstance(entry, dict) else None
        if not isinstance(name, str):
            continue
        if name in seen:
            yield Finding((*section, index, key), f"{what} {name!r} is given twice; names are unique")
        seen.add(name)
