# SPDX-License-Identifier: Apache-2.0
"""The file from which the guest's Python has its modules: nothing is looked for, nothing is executed too early."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
FILES = {
    "pack/__init__.py": "order = ['pack']\nfrom pack import inner\n",
    "pack/inner.py": "import pack\npack.order.append('inner')\nvalue = 7\n",
    "alone/__init__.py": "print('alone')\n",
    "alone/deep.py": "print('deep')\nvalue = 8\n",
    "unused.py": "print('unused')\n",
    "plain.py": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Point:\n    x: int\n",
    "user.py": (
        "import pack, unused, plain\n"
        "def deep():\n    from alone.deep import value\n    return value\n"
        "import alone.deep\n"
        "try:\n    import nowhere\nexcept ModuleNotFoundError:\n    nowhere = None\n"
    ),
}


def python(folder: Path, program: str) -> str:
    """Return the output of a fresh interpreter that has only its own modules, those of ``folder`` and ``start``."""
    begin = f"import sys; path = list(sys.path); sys.path[:0] = [{str(SOURCE)!r}]\nfrom longfat.guest import start\n"
    begin += f"sys.path[:] = [{str(folder)!r}, *path]\nfile = {str(folder / 'modules')!r}\n"
    command = [sys.executable, "-I", "-S", "-c", begin + program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose file ``modules`` is all that is left of the modules above."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    python(tmp_path, "sys.dont_write_bytecode = True\nstart.collect(['user'], file)")
    for name in FILES:
        (tmp_path / name).unlink()
    return tmp_path


def test_a_module_is_executed_when_it_is_first_used_and_only_then(folder: Path) -> None:
    said = python(folder, "start.load(file)\nimport user\nuser.nowhere; print('.'); print(user.deep())")
    assert said == ".\nalone\ndeep\n8\n"


def test_a_package_that_imports_its_module_is_executed_before_it(folder: Path) -> None:
    said = python(folder, "start.load(file)\nfrom pack.inner import value\nimport pack\nprint(pack.order)")
    assert said == "['pack', 'inner']\n"


def test_dataclasses_are_made_as_before_from_code_that_is_already_compiled(folder: Path) -> None:
    program = "start.load(file)\nimport dataclasses, plain\ncode = dataclasses.exec.__self__.code\nbefore = len(code)\n"
    program += "print(plain.Point(3), plain.Point(3) == plain.Point(3), before > 0, len(code) == before)"
    assert python(folder, program) == "Point(x=3) True True True\n"
