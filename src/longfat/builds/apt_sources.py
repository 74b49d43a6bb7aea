# SPDX-License-Identifier: Apache-2.0
"""Which Debian archive the image's packages come from: the one that this machine already uses.

Owns the translation of apt's own view of its sources into one-line sources of the image's suite.
Must not read the source files themselves: apt knows both of their formats.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

_FIELDS = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"


@dataclass(frozen=True)
class AptSource:
    """One repository that apt is configured for; ``origin`` is empty until its lists were fetched."""

    uri: str
    release: str
    component: str
    origin: str


def configured_sources() -> tuple[AptSource, ...]:
    """The binary repositories of this machine's apt, or none where there is no apt."""
    argv = ["apt-get", "indextargets", "--format", _FIELDS, "Created-By: Packages"]
    try:
        listing = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    return parse_listing(listing)


def parse_listing(listing: str) -> tuple[AptSource, ...]:
    """Read what ``apt-get indextargets`` prints: URI, release, component and origin in each line."""
    rows = (line.split(" ", 3) for line in listing.splitlines() if line.count(" ") >= 2)
    return tuple(AptSource(row[0].rstrip("/"), row[1], row[2], row[3] if len(row) > 3 else "") for row in rows)


def source_lines(suite: str, configured: Iterable[AptSource]) -> tuple[str, ...]:
    """Sources of ``suite``, its updates and its security fixes, from the archives in ``configured``.

    The machine may run another Debian release than ``suite``: the archives hold them all. None where the machine
    has no Debian archive (Ubuntu, for one): mmdebstrap then takes Debian's public one.
    """
    debian = [source for source in configured if _is_debian(source)]
    security = [source.uri for source in debian if source.release.endswith("-security")]
    archive = [source.uri for source in debian if "-" not in source.release]
    wanted = [(uri, f"{suite}{part}") for uri in archive[:1] for part in ("", "-updates")]
    wanted += [(uri, f"{suite}-security") for uri in security[:1] if archive]
    return tuple(f"deb [signed-by={KEYRING}] {uri} {release} main" for uri, release in wanted)


def _is_debian(source: AptSource) -> bool:
    """Whether Debian itself made the repository; before its lists are fetched, whether it is laid out so."""
    if source.component != "main":
        return False
    if source.origin and not source.origin.startswith("$("):
        return source.origin == "Debian"
    return source.uri.rsplit("/", 1)[-1] in ("debian", "debian-security")
