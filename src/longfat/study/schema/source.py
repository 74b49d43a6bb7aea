# SPDX-License-Identifier: Apache-2.0
"""Reading of a YAML file into plain data with the line of every key.

Owns the subset of YAML that a manifest may use: mappings, lists and scalars of YAML 1.2's core schema, no anchors and
aliases, no merge keys, no tags. Must not know the meaning of the keys.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path as FilePath
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from longfat.study.schema.explain import explain
from longfat.study.schema.names import Finding, Path, key_text
from longfat.system.errors import Problem, StudyError
from longfat.system.files import read_plain
from longfat.system.text import has_controls

MAX_BYTES = 1_000_000  # manifests are written by hand; a larger file is the wrong file


@dataclass
class Source:
    """A YAML file as plain data, with the line of each path, the faults found, and the SHA-256 of the bytes read."""

    file: str
    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    sha256: str = ""

    def line(self, path: Path) -> int | None:
        """Return the line of a path, or of the nearest existing place above it."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None

    def problem(self, finding: Finding) -> Problem:
        """Return the finding with file and line."""
        return Problem(self.file, self.line(finding.path), key_text(finding.path), finding.message, finding.hint)


def read_source(path: FilePath, what: str = "study") -> Source:
    """Read a YAML file, called ``what`` in messages.

    Raises StudyError when it is missing, unreadable, too large or not YAML.
    """
    source = Source(file=str(path))
    text = _text(path, what)
    try:
        source.sha256 = hashlib.sha256(text.encode()).hexdigest()
        _Reader(text, source).read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = text.splitlines()[mark.line : mark.line + 1] if mark else []
        tab = any("\t" in one[: len(one) - len(one.lstrip())] for one in line)
        message = "not YAML: the line begins with a tab; indent with spaces" if tab else f"not YAML: {error.problem}"
        problem = Problem(str(path), mark.line + 1 if mark else None, "", message)
        raise StudyError(f"the {what} cannot be read", problems=(problem,)) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise StudyError(f"the {what} cannot be read: not YAML: {reason}", where=str(path)) from error
    return source


def _text(path: FilePath, what: str) -> str:
    """Return the file's text. Raises StudyError if it cannot be read."""
    hint = "name the study.yaml of a folder under experiments/" if what == "study" else None
    try:
        raw = read_plain(path, path.parent, MAX_BYTES)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StudyError(f"the {what} cannot be read: {reason}", where=str(path), hint=hint) from error
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place, byte = raw.count(b"\n", 0, error.start) + 1, raw[error.start]
        message = f"the {what} is not UTF-8 text: byte {error.start}, in line {place}, is {byte:#04x}"
        raise StudyError(message, where=str(path), hint="save the file as UTF-8") from error


_SCALARS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"true|false"), lambda text: text == "true"),
    (re.compile(r"~|null|"), lambda _text: None),
    (re.compile(r"[-+]?[0-9]{1,18}"), int),
    (re.compile(r"[-+]?[0-9]{1,18}(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?"), float),
)
_ANCHOR = "anchors and aliases are not part of the format; write the value out"
_CONTROL = "control characters are not part of the format; write the text without them"
_TAG = "tags are not part of the format; write the value alone"


class _Reader:
    """Converter from the events of libyaml's parser to plain data, ten times as fast as nodes in Python."""

    def __init__(self, text: str, source: Source) -> None:
        self._parser = yaml.CSafeLoader(text)
        self._source = source

    def read(self) -> None:
        """Fill the source. Raises yaml.YAMLError, RecursionError or ValueError."""
        self._next()  # the stream's start
        if isinstance(self._next(), yaml.StreamEndEvent):
            return
        self._source.data = self._value(self._next(), ())
        self._next()  # the document's end
        if not isinstance(event := self._next(), yaml.StreamEndEvent):
            raise _refused("a file has one document, but another begins here", event)

    def _next(self) -> Any:
        return self._parser.get_event()

    def _value(self, event: Any, path: Path) -> Any:
        """Return the plain data that begins with ``event``, and record its line unless its key has one."""
        if event.anchor is not None:
            raise _refused(_ANCHOR, event)
        if event.tag is not None:
            raise _refused(_TAG, event)
        self._source.lines.setdefault(path, event.start_mark.line + 1)
        if isinstance(event, yaml.ScalarEvent):
            if has_controls(event.value):
                raise _refused(_CONTROL, event)
            return _scalar(event.value) if event.implicit[0] else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            found: list[Any] = []
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                found.append(self._value(event, (*path, len(found))))
            return found
        return self._mapping(path)

    def _mapping(self, path: Path) -> dict[str, Any]:
        """Return the mapping whose start was read. A key given twice is a finding; its first value counts."""
        result: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            line = event.start_mark.line + 1
            key = event.value if isinstance(event, yaml.ScalarEvent) else "?"
            place, known = (*path, key), self._source
            if key in result:
                message = f"given twice, on lines {known.lines[place]} and {line}; each key is allowed once"
                known.findings.append(Finding(place, message))
                self._source = Source(known.file)  # ignore its content
            self._value(event, place)
            value = self._value(self._next(), place)
            self._source = known
            result.setdefault(key, value)
        return result


@cache
def _scalar(text: str) -> Any:
    """Return the value of a scalar without quotes."""
    return next((make(text) for pattern, make in _SCALARS if pattern.fullmatch(text)), text)


def _refused(message: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=message, problem_mark=event.start_mark)


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
