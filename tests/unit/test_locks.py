# SPDX-License-Identifier: Apache-2.0
"""Every installer compares what it installs with the hashes of a lock file."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLERS = [ROOT / name for name in ("just", "Justfile", "infra/with-lock", "infra/scan/run", "infra/ansible/run")]
LOCKS = sorted(path for path in ROOT.glob("**/requirements*.lock") if ".venv" not in path.parts)


def wheel(folder: Path) -> Path:
    """Make a package of one module."""
    path = folder / "tiny_of_test-1.0-py3-none-any.whl"
    about = "tiny_of_test-1.0.dist-info"
    files = {
        "tiny_of_test.py": "print('it ran')",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: tiny-of-test\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


@pytest.mark.parametrize("right", [True, False])
def test_an_environment_has_only_packages_with_the_hashes_of_its_lock(tmp_path: Path, right: bool) -> None:
    digest = hashlib.sha256(wheel(tmp_path).read_bytes()).hexdigest()
    if not right:
        digest = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    lock = tmp_path / "one.lock"
    lock.write_text(f"tiny-of-test==1.0 --hash=sha256:{digest}\n", encoding="ascii")
    own = {"LONGFAT_CACHE": str(tmp_path / "cache"), "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(tmp_path)}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [ROOT / "infra/with-lock", lock, "python", "-m", "tiny_of_test"],
        env={**os.environ, **own, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert ("it ran" in done.stdout) is right and (done.returncode == 0) is right, done.stderr
    assert right or "hash" in done.stderr.lower()


@pytest.mark.parametrize("installer", INSTALLERS, ids=lambda path: path.name)
def test_no_installer_leaves_the_hashes_out(installer: Path) -> None:
    text = re.sub(r"\\\n\s*", " ", installer.read_text(encoding="utf-8"))
    assert "--with-requirements" not in re.sub("#.*", "", text)
    commands = [
        line for line in text.splitlines() if "pip install" in line and not line.lstrip().startswith(("#", "stop"))
    ]
    assert all("--require-hashes" in line for line in commands), commands


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_package_of_a_lock_has_a_hash(lock: Path) -> None:
    text = re.sub(r"\\\n\s*", " ", lock.read_text(encoding="utf-8"))
    packages = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert packages and all("--hash=sha256:" in line and "://" not in line for line in packages)
