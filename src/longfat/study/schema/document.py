# SPDX-License-Identifier: Apache-2.0
"""Checks of a YAML file next to study.yaml: one list of named entries, with all problems at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from longfat.study.schema.explain import explain
from longfat.study.schema.names import Finding
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
    findings = [*source.findings, *_repeated(source.data.get(section), section, key)]
    document: Model | None = None
    try:
        document = model.model_validate(source.data, context=context)
    except ValidationError as error:
        findings += explain(error, source.data, model)
    if document is not None:
        findings += check(document)
    if findings or document is None:
        raise _refused(source, findings)
    return document


def _refused(source: Source, findings: list[Finding]) -> StudyError:
    problems = [source.problem(finding) for finding in dict.fromkeys(findings)]
    problems.sort(key=lambda problem: problem.line or 0)
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return StudyError(f"{FilePath(source.file).name} has {count}", problems=tuple(problems))


def _repeated(entries: object, section: str, key: str) -> Iterator[Finding]:
    """Yield entries with the name of an earlier one."""
    seen: set[str] = set()
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        name = entry.get(key) if isinstance(entry, dict) else None
        if isinstance(name, str) and name in seen:
            message = f"{section.removesuffix('s')} {name!r} is given twice; names are unique"
            yield Finding((section, index, key), message)
        if isinstance(name, str):
            seen.add(name)
