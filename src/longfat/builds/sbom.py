# SPDX-License-Identifier: Apache-2.0
"""The list of a container image's software, in the form of SPDX 2.3 (ISO/IEC 5962)."""

from __future__ import annotations

import email
import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

UNKNOWN = "NOASSERTION"
WHOLE = "SPDXRef-longfat"


def sbom(userland: Path, python: Path, version: str, epoch: int) -> str:
    """Return the text of an SPDX document, equal for equal inputs.

    ``userland`` has dpkg's status, ``python`` the folders ``*.dist-info``. The licences of Debian's packages are not
    stated, because dpkg does not know them.
    """
    found = sorted([*_debian(userland), *_python(python)], key=lambda one: str(one["SPDXID"]))
    own = _package("longfat", version, "Apache-2.0", f"pkg:generic/longfat@{version}") | {"SPDXID": WHOLE}
    content = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
    contained = (
        {"spdxElementId": WHOLE, "relationshipType": "CONTAINS", "relatedSpdxElement": one["SPDXID"]} for one in found
    )
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"longfat-{version}",
        "documentNamespace": f"https://longfat.invalid/spdx/{version}/{content}",
        "creationInfo": {
            "created": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: longfat-{version}"],
        },
        "packages": [own, *found],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": WHOLE},
            *contained,
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _package(name: str, version: str, licence: str, purl: str) -> dict[str, Any]:
    letters = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in f"{purl[4:]}")
    return {
        "SPDXID": f"SPDXRef-{letters}",
        "name": name,
        "versionInfo": version,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": licence,
        "copyrightText": UNKNOWN,
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}],
    }


def _debian(userland: Path) -> Iterator[dict[str, Any]]:
    for entry in (userland / "var/lib/dpkg/status").read_text(encoding="utf-8").strip().split("\n\n"):
        about = email.message_from_string(entry)
        if about["Status"].endswith(" installed"):
            name, version = about["Package"], about["Version"]
            escaped = version.replace("+", "%2B").replace(":", "%3A")
            purl = f"pkg:deb/debian/{name.replace('+', '%2B')}@{escaped}?arch={about['Architecture']}"
            yield _package(name, version, UNKNOWN, purl)


def _python(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.dist-info/METADATA")):
        about = email.message_from_string(file.read_text(encoding="utf-8"))
        name, version = about["Name"], about["Version"]
        licence = about["License-Expression"] or UNKNOWN
        yield _package(name, version, licence, f"pkg:pypi/{name.lower().replace('_', '-')}@{version}")
