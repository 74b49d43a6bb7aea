# SPDX-License-Identifier: Apache-2.0
"""The import rules of the package hold."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from import_table import PARTS, allowed

SOURCE = Path(__file__).parents[2] / "src"
MAIN = {"__init__", "__main__"}
MODULES = sorted(SOURCE.glob("longfat/**/*.py"))


def imports(path: Path) -> set[str]:
    """Every module that ``path`` imports from, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.update(_modules(str(node.module), node.names))
    return found


def _modules(source: str, names: list[ast.alias]) -> set[str]:
    """What ``from source import names`` imports from: the modules among the names, or the source itself."""
    folder = SOURCE / source.replace(".", "/")
    inner = {f"{source}.{alias.name}" for alias in names if (folder / f"{alias.name}.py").exists()}
    return inner if len(inner) == len(names) else inner | {source}


def package_of(path: Path) -> str:
    """The part that a module belongs to; of a roof over several parts, the part below it."""
    names = path.relative_to(SOURCE / "longfat").with_suffix("").parts
    found = [part for part in (".".join(names[:2]), names[0]) if part in PARTS]
    return found[0] if found else names[-1]


def of_this_package(path: Path) -> set[str]:
    """Every module of this package that ``path`` imports from, without the package's name."""
    return {name.removeprefix("longfat.") for name in imports(path) if name.startswith("longfat.")}


def is_in(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_its_part_may(path: Path) -> None:
    part = package_of(path)
    if part in MAIN or PARTS[part].free:
        return
    wrong = {name for name in of_this_package(path) if not any(is_in(name, other) for other in allowed(part))}
    assert wrong == set()


@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_part_may_import_nothing_that_it_does_not(part: str) -> None:
    used = {name for path in MODULES if package_of(path) == part for name in of_this_package(path)}
    assert {other for other in PARTS[part].may if not any(is_in(name, other) for name in used)} == set()


@pytest.mark.parametrize("part", sorted(name for name, part in PARTS.items() if part.leaf or part.travels))
def test_what_travels_and_the_leaves_need_only_what_is_there(part: str) -> None:
    paths = [path for path in MODULES if package_of(path) == part]
    foreign = {name.split(".")[0] for path in paths for name in imports(path)}
    assert foreign - set(sys.stdlib_module_names) <= PARTS[part].foreign | {"longfat"}


def test_only_the_command_ends_the_process() -> None:
    exits = {"SystemExit", "typer.Exit", "sys.exit", "os._exit"}
    users = [
        path
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in exits
    ]
    assert {path.parent.name for path in users} == {"cli"}
