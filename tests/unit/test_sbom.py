# SPDX-License-Identifier: Apache-2.0
"""The list of a container image's software."""

from __future__ import annotations

import json
from pathlib import Path

from longfat.builds.oci import sbom

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
