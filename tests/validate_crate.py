# SPDX-License-Identifier: Apache-2.0
"""Validates a package of `./just package` against the profile Workflow Run Crate: python tests/validate_crate.py FILE.

Needs roc-validator (tests/requirements.in). Works without a network: the context of RO-Crate is that which rocrate
brings, and nothing else is fetched. Exit status 1 where a requirement is not met.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings
from rocrate_validator.utils.http import HttpRequester

PROFILE = "workflow-run-crate-0.5"


BIOSCHEMAS = "https://bioschemas.org/"


class Context:
    """The context by which terms of a crate are read, as an answer of a server that nobody asks.

    rocrate brings that of RO-Crate 1.3, which has all terms of 1.1, those of Bioschemas under other addresses.
    """

    status_code = 200
    headers: Mapping[str, str] = {"Content-Type": "application/ld+json"}

    def __init__(self, url: str) -> None:
        if not url.startswith("https://w3id.org/ro/crate/1."):
            raise RuntimeError(f"{url} is not fetched")
        self.url = url

    def json(self) -> Any:
        """The context."""
        terms = json.loads((files("rocrate") / "data" / "ro-crate.jsonld").read_text(encoding="utf-8"))
        own = ("ComputationalWorkflow", "FormalParameter")
        terms["@context"] |= {name: f"{BIOSCHEMAS}{name}" for name in own}
        return terms

    @property
    def text(self) -> str:
        """The same as text."""
        return json.dumps(self.json())


def problems(crate: Path) -> list[str]:
    """What the crate in a folder lacks of the profile."""
    HttpRequester.get = lambda self, url, **options: Context(url)
    settings = ValidationSettings(
        rocrate_uri=str(crate), profile_identifier=PROFILE, requirement_severity=Severity.REQUIRED, offline=True
    )
    found = services.validate(settings).get_issues(Severity.REQUIRED)
    return [f"{issue.check.identifier}: {issue.message}" for issue in found]


def main(package: Path) -> int:
    """Print the problems of a zip file and give the exit status."""
    with tempfile.TemporaryDirectory(prefix="longfat-crate-") as folder, zipfile.ZipFile(package) as archive:
        archive.extractall(folder)
        found = problems(Path(folder))
    sys.stdout.write("".join(f"{line}\n" for line in found) or f"{package} conforms to {PROFILE}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
