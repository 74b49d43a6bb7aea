# SPDX-License-Identifier: Apache-2.0
"""Which Debian archive packages come from that are not for this machine: the one that it already uses.

Owns the translation of apt's own view of its sources into one-line sources of another suite.
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
    """The binary repositories of this machine's apt; empty where there is no apt."""
    argv = ["apt-get", "indextargets", "--format", _FIELDS, "Created-By: Packages"]
    try:
        listing = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    return parse_listing(listing)


def parse_listing(listing: str) -> tuple[AptSource, ...]:
    """Read the output of ``apt-get indextargets``: URI, release, component and origin in each line."""
    rows = (line.split(" ", 3) for line in listing.splitlines() if line.count(" ") >= 2)
    return tuple(AptSource(row[0].rstrip("/"), row[1], row[2], row[3] if len(row) > 3 else "") for row in rows)


def source_lines(suite: str, configured: Iterable[AptSource]) -> tuple[str, ...]:
    """Sources of ``suite``, its updates and its security fixes, from the archives in ``configured``.

    The machine may run another Debian release than ``suite``: the archives hold them all. None where the machine
    has no Debian archive (Ubuntu, for one): mmdebstrap then takes Debian's public one.
    """
    archive, security = _archives(configured)
    wanted = [(uri, f"{suite}{part}") for uri in archive for part in ("", "-updates")]
    wanted += [(uri, f"{suite}-security") for uri in security if archive]
    return tuple(map(_line, wanted))


def single_source(suite: str, configured: Iterable[AptSource]) -> str | None:
    """The source of exactly ``suite`` from the archive in ``configured``; None where that has no Debian archive."""
    return next((_line((uri, suite)) for uri in _archives(configured)[0]), None)


def _archives(configured: Iterable[AptSource]) -> tuple[list[str], list[str]]:
    """The URIs of the archive and of the security fixes, each in a list of one or none."""
    debian = [source for source in configured if _is_debian(source)]
    security = [source.uri for source in debian if source.release.endswith("-security")]
    archive = [source.uri for source in debian if "-" not in source.release]
    return archive[:1], security[:1]


def _line(wanted: tuple[str, str]) -> str:
    uri, release = wanted
    return f"deb [signed-by={KEYRING}] {uri} {release} main"


def _is_debian(source: AptSource) -> bool:
    """Whether Debian itself made the repository; before its lists are fetched, whether it is laid out so."""
    if source.component != "main":
        return False
    if source.origin and not source.origin.startswith("$("):
        return source.origin == "Debian"
    return source.uri.rsplit("/", 1)[-1] in ("debian", "debian-security")
