# SPDX-License-Identifier: Apache-2.0
"""The signature of a file, made and checked by OpenSSH."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from longfat.builds.oci import sign_file
from longfat.system.errors import RigError

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="missing: openssh-client")


def accepts(file: Path, signature: Path, signers: Path) -> bool:
    verify = ["ssh-keygen", "-Y", "verify", "-n", "longfat", "-s", str(signature), "-f", str(signers), "-I", "we"]
    return subprocess.run(verify, input=file.read_bytes(), capture_output=True).returncode == 0


def test_a_signature_is_accepted_for_the_signed_bytes_only(tmp_path: Path) -> None:
    key, file, signers = tmp_path / "key", tmp_path / "archive.tar", tmp_path / "signers"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    signers.write_text(f"we {key.with_suffix('.pub').read_text()}")
    file.write_bytes(b"first")
    first = sign_file(file, key).read_bytes()
    assert accepts(file, tmp_path / "archive.tar.sig", signers)
    file.write_bytes(b"second")
    assert not accepts(file, tmp_path / "archive.tar.sig", signers)
    assert sign_file(file, key).read_bytes() != first
    assert accepts(file, tmp_path / "archive.tar.sig", signers)


def test_a_key_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "archive.tar").write_bytes(b"first")
    with pytest.raises(RigError):
        sign_file(tmp_path / "archive.tar", tmp_path / "none")
