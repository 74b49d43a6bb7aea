# SPDX-License-Identifier: Apache-2.0
"""How a container gets its Python packages, and how pip's and Python's failures end. Nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.builds.python_packages import LOADER, compile_all, install, is_wanted
from longfat.errors import RigError

LOCK = "six==1.17.0 \\\n    --hash=sha256:ea\n"


def root_with_loader(tmp_path: Path, script: str) -> Path:
    """A root folder whose loader is a shell script."""
    loader = tmp_path / "root" / LOADER
    loader.parent.mkdir(parents=True)
    loader.write_text(f"#!/bin/sh\n{script}\n")
    loader.chmod(0o755)
    return tmp_path / "root"


def test_pip_checks_hashes_and_builds_nothing_with_the_python_of_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/of/this/machine")
    root = root_with_loader(tmp_path, f'echo "$@" >{tmp_path}/argv; env >{tmp_path}/env')
    install(LOCK, root, tmp_path / "packages")
    argv = (tmp_path / "argv").read_text().split()
    assert argv[:3] == ["--library-path", str(root / "usr/lib/x86_64-linux-gnu"), str(root / "usr/bin/python3")]
    assert {"--require-hashes", "--only-binary=:all:", f"--target={tmp_path}/packages"} <= set(argv)
    environment = (tmp_path / "env").read_text().splitlines()
    assert f"PYTHONHOME={root}/usr" in environment
    assert not [line for line in environment if line.startswith("PYTHONPATH")]


def test_a_failure_of_pip_is_shown(tmp_path: Path) -> None:
    root = root_with_loader(tmp_path, "echo no matching distribution >&2; exit 1")
    with pytest.raises(RigError, match="pip could not install the Python packages:\nno matching distribution"):
        install(LOCK, root, tmp_path / "packages")


def test_bytecode_names_the_place_that_it_will_have(tmp_path: Path) -> None:
    root = root_with_loader(tmp_path, f'echo "$@" >{tmp_path}/argv; exit 1')
    compile_all(root, tmp_path / "packages", "/usr/local")  # a file of Python 2 is no reason to fail
    argv = (tmp_path / "argv").read_text()
    assert "--invalidation-mode unchecked-hash" in argv
    assert f"-s {tmp_path}/packages -p /usr/local {tmp_path}/packages" in argv


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("bin", False),
        ("numpy/bin", True),
        ("numpy/lib/tests", False),
        ("numpy/testing", True),
        ("jinja2/tests.py", True),
        ("rich-15.0.dist-info/RECORD", False),
        ("rich-15.0.dist-info/METADATA", True),
        ("pyarrow/include", False),
    ],
)
def test_traces_of_the_installation_and_tests_stay_out(path: str, wanted: bool) -> None:
    assert is_wanted(path) == wanted
