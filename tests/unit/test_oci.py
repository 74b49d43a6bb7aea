# SPDX-License-Identifier: Apache-2.0
"""The list of a container image's software, and its signature, made and checked by OpenSSH."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from longfat.builds.oci import sbom, sign_file
from longfat.system.errors import RigError

STATUS = """\
Package: libstdc++6
Status: install ok installed
Architecture: amd64
Version: 12.2.0-14+deb12u1
Description: GNU Standard C++ Library v3
 This package contains a library.

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1:2-3
"""


def test_each_installed_package_is_listed_once_with_version_and_place(tmp_path: Path) -> None:
    status, python = tmp_path / "var/lib/dpkg/status", tmp_path / "python/a_b-1.0.dist-info"
    for made in (status.parent, python):
        made.mkdir(parents=True)
    status.write_text(STATUS)
    (python / "METADATA").write_text("Name: a_b\nVersion: 1.0\nLicense-Expression: MIT\n\nText of it\n")
    text = sbom(tmp_path, tmp_path / "python", "9.8", 0)
    assert text == sbom(tmp_path, tmp_path / "python", "9.8", 0)
    document = json.loads(text)
    ids = [one["SPDXID"] for one in document["packages"]]
    assert len(set(ids)) == len(ids)
    assert {one["relatedSpdxElement"] for one in document["relationships"]} == set(ids)
    found = {one["name"]: one for one in document["packages"]}
    assert found.keys() == {"longfat", "libstdc++6", "a_b"}
    assert found["a_b"]["licenseDeclared"] == "MIT" and found["longfat"]["versionInfo"] == "9.8"
    (place,) = found["libstdc++6"]["externalRefs"]
    assert place["referenceLocator"] == "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?arch=amd64"


SIGNING = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="missing: openssh-client")


def accepts(file: Path, signature: Path, signers: Path) -> bool:
    verify = ["ssh-keygen", "-Y", "verify", "-n", "longfat", "-s", str(signature), "-f", str(signers), "-I", "we"]
    return subprocess.run(verify, input=file.read_bytes(), capture_output=True).returncode == 0


@SIGNING
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


@SIGNING
def test_a_key_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "archive.tar").write_bytes(b"first")
    with pytest.raises(RigError):
        sign_file(tmp_path / "archive.tar", tmp_path / "none")
