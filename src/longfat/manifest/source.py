# SPDX-License-Identifier: Apache-2.0
"""Reading of a YAML file into plain data that remembers the line of every key.

Owns the subset of YAML that a manifest may use: mappings, lists and scalars, no aliases, no merge keys, no
tags, and only ``true`` and ``false`` as truth values. It must not know what the keys mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from longfat.errors import Problem, StudyError
from longfat.manifest.names import Finding, Path, key_text

MAX_BYTES = 1_000_000  # a manifest is written by hand; more is a mistaken file name


@dataclass
class Source:
    """A YAML file as plain data, with the line of each path and the faults found while reading."""

    file: str
    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def line(self, path: Path) -> int | None:
        """The line of a path, or of the nearest place above it that exists."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None

    def problem(self, finding: Finding) -> Problem:
        """The finding with file and line."""
        return Problem(self.file, self.line(finding.path), key_text(finding.path), finding.message, finding.hint)


class _Loader(yaml.SafeLoader):
    """SafeLoader without aliases, and with the scalar types of YAML 1.2's core schema only."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            problem = "aliases are not part of the format; write the value out"
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"~|null|", ["~", "n", ""]),
    ("int", r"[-+]?[0-9]{1,18}", "-+0123456789"),
    ("float", r"[-+]?[0-9]{1,18}(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?", "-+0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))


def read_source(path: FilePath) -> Source:
    """Read a YAML file. Raises StudyError when it is missing, unreadable, too large or not YAML."""
    source = Source(file=str(path))
    try:
        text = _text(path)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            source.data = _plain(node, (), source, loader) if node else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        problem = Problem(str(path), mark.line + 1 if mark else None, "", f"not YAML: {error.problem}")
        raise StudyError("the study cannot be read", problems=(problem,)) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise StudyError(f"the study cannot be read: not YAML: {reason}", where=str(path)) from error
    return source


def _text(path: FilePath) -> str:
    """The file's text. Raises StudyError when there is none."""
    hint = "name the study.yaml of a folder under experiments/"
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StudyError(f"the study cannot be read: {reason}", where=str(path), hint=hint) from error
    if len(raw) > MAX_BYTES:
        message = f"the study has more than {MAX_BYTES} bytes, the most a manifest may have"
        raise StudyError(message, where=str(path), hint=hint)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the study is not UTF-8 text: byte {error.start} is {raw[error.start]:#04x}"
        raise StudyError(message, where=str(path), hint=hint) from error


def _plain(node: yaml.Node, path: Path, source: Source, loader: _Loader) -> Any:
    """Turn a node into plain data and note its line, without overwriting that of its key."""
    source.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, index), source, loader) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, source, loader)
    return loader.construct_object(node)


def _mapping(node: yaml.MappingNode, path: Path, source: Source, loader: _Loader) -> dict[str, Any]:
    """Turn a mapping into a dictionary; a key given twice is a finding and its first value stands."""
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
        line = key_node.start_mark.line + 1
        if key in result:
            first = source.lines[(*path, key)]
            message = f"given twice, on lines {first} and {line}; each key stands once"
            source.findings.append(Finding((*path, key), message))
            continue
        source.lines[(*path, key)] = line
        result[key] = _plain(value_node, (*path, key), source, loader)
    return result
