# SPDX-License-Identifier: Apache-2.0
"""The import rules of the package, as a table: who may import whom."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
LEAVES = {"errors", "runspec", "units", "events", "cache"}
ALLOWED = {
    **{leaf: {"errors"} for leaf in LEAVES},
    "lab": {"runspec"},
    "manifest": LEAVES | {"catalog"},
    "catalog": LEAVES,
    "plan": LEAVES | {"manifest", "catalog"},
    "builds": LEAVES,
    "record": LEAVES,
    "labs": LEAVES | {"builds"},
    "agent": {"runspec", "lab", "backends.host_kernel"},
    "hosts": LEAVES | {"lab", "labs.folder"},
    "backends": LEAVES | {"lab", "builds", "hosts", "labs.folder", "dataset.gates"},
    "execute": LEAVES | {"backends", "record"},
    "crosscheck": LEAVES | {"dataset", "analysis.style"},
    "conformance": LEAVES | {"backends", "analysis.style"},
    "dataset": LEAVES | {"record", "plan.lockfile", "plan.model"},
    "analysis": LEAVES | {"dataset", "manifest", "plan.lockfile", "plan.model"},
}
# Leaves and laboratory code run inside the guest, which has the standard library, Mininet and the
# libraries of Docker and curl.
FOREIGN = {**{leaf: set() for leaf in LEAVES}, "lab": {"docker", "mininet", "pycurl"}, "agent": {"mininet"}}
FREE = {"verbs", "cli", "bench", "__init__", "__main__"}
MODULES = sorted(SOURCE.glob("longfat/**/*.py"))


def imports(path: Path) -> set[str]:
    """Every module that ``path`` imports from, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module))
    return found


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE / "longfat").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_its_package_may(path: Path) -> None:
    package = package_of(path)
    own = {name.removeprefix("longfat.") for name in imports(path) if name.startswith("longfat.")}
    allowed = {package} | ALLOWED.get(package, set())
    wrong = {name for name in own if not any(name == ok or name.startswith(f"{ok}.") for ok in allowed)}
    assert package in FREE or package in ALLOWED, f"no import rule for {package}"
    assert package in FREE or wrong == set()


@pytest.mark.parametrize("package", sorted(FOREIGN))
def test_what_runs_inside_the_guest_needs_only_what_is_there(package: str) -> None:
    paths = [path for path in MODULES if package_of(path) == package]
    foreign = {name.split(".")[0] for path in paths for name in imports(path)}
    assert foreign - set(sys.stdlib_module_names) <= FOREIGN[package] | {"longfat"}


def test_only_the_command_ends_the_process() -> None:
    exits = {"SystemExit", "typer.Exit", "sys.exit", "os._exit"}
    users = [
        path.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in exits
    ]
    assert set(users) <= {"cli.py"}
