# SPDX-License-Identifier: Apache-2.0
"""The Python packages that longfat needs to run, installed for the image's Python instead of this machine's.

Owns how the image's Python is made to work outside of a guest: started by the image's own loader, with the image's own
libraries. It needs no root, and no Python of that version here.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path

from longfat.errors import RigError

LOADER = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
OUTPUT_TAIL_CHARS = 2000
# Left by pip: programs that name this machine's Python, and records of the installation that nothing reads later.
_OF_THE_INSTALLATION = re.compile(r"(bin|etc|share)|.*\.dist-info/(INSTALLER|RECORD|REQUESTED|direct_url\.json)")
_TESTS = re.compile(r".*/tests|pyarrow/include")


def install(lock: str, root: Path, target: Path) -> None:
    """Install the packages of ``lock`` into the new folder ``target``, as pip of the Python below ``root`` would.

    Raises RigError with the end of pip's output.
    """
    pip = importlib.util.find_spec("pip")
    if pip is None or pip.origin is None:
        raise RigError("this Python has no pip", hint="./just makes an environment with pip")
    requirements = target.with_suffix(".txt")
    requirements.write_text(lock, encoding="utf-8")
    argv = [str(Path(pip.origin).parent), "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    argv += ["--require-hashes", "--only-binary=:all:", f"--target={target}", f"--requirement={requirements}"]
    done = _python(root, argv)
    if done.returncode:
        raise RigError(
            f"pip could not install the Python packages:\n{done.stdout[-OUTPUT_TAIL_CHARS:]}",
            hint="is the package index reachable? pip's own settings apply",
        )


def compile_all(root: Path, folder: Path, place: str) -> None:
    """Compile the modules below ``folder`` for the Python below ``root``; they will be below ``place``.

    The bytecode is never compared with its source. A module that cannot be compiled is left as it is.
    """
    argv = ["-m", "compileall", "-qq", "-f", "--invalidation-mode", "unchecked-hash"]
    _python(root, [*argv, "-s", str(folder), "-p", place, str(folder)])


def is_wanted(path: str) -> bool:
    """Whether a container needs this path inside a folder that ``install`` has filled."""
    return not (_OF_THE_INSTALLATION.fullmatch(path) or _TESTS.fullmatch(path))


def _python(root: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the Python below ``root`` without site-packages, output and errors together."""
    library, program = root / Path(LOADER).parent, root / "usr/bin/python3"
    argv = [str(root / LOADER), "--library-path", str(library), str(program), "-s", "-S", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LD_"))}
    environment |= {"PYTHONHOME": str(root / "usr"), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    return subprocess.run(
        argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
