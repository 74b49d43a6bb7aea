# SPDX-License-Identifier: Apache-2.0
"""The agent's code as one zip archive, which is sent to a host with each connection."""

from __future__ import annotations

import io
import zipfile

from longfat.system.identity import PACKAGE, code_identity, package_sources

MODULES = (
    *("__init__.py", "spec/__init__.py", "spec/plain.py", "spec/links.py", "spec/runspec.py", "spec/network.py"),
    *("system/__init__.py", "system/locks.py", "system/parent.py", "system/errors.py", "guest"),
    *("backends/__init__.py", "backends/testbed/__init__.py", "backends/testbed/agent"),
)
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time in the format


def agent_code() -> bytes:
    """Return the archive: the same bytes for the same sources."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in package_sources(MODULES):
            name = zipfile.ZipInfo(f"longfat/{path.relative_to(PACKAGE)}", EPOCH)
            archive.writestr(name, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def code_digest() -> str:
    """Return the identity of the sources in the archive: SHA-256 (hex) over their behaviour."""
    return code_identity(PACKAGE, package_sources(MODULES))
