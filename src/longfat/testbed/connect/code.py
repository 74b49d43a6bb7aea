# SPDX-License-Identifier: Apache-2.0
"""The agent's code as one zip archive, which is sent to a host with each connection."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from longfat.identity import code_identity

PACKAGE = Path(__file__).resolve().parents[2]
LEAVES = ("__init__.py", "plain.py", "links.py", "runspec.py", "network.py", "locks.py", "parent.py", "errors.py")
MODULES = (*LEAVES, "guest", "testbed/__init__.py", "testbed/agent", "backends/__init__.py", "backends/host_kernel.py")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that the format knows


def agent_code() -> bytes:
    """The archive: the same bytes for the same sources."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _sources():
            name = zipfile.ZipInfo(f"longfat/{path.relative_to(PACKAGE)}", EPOCH)
            archive.writestr(name, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def code_digest() -> str:
    """The identity of the sources in the archive: SHA-256 (hex) over their behaviour."""
    return code_identity(PACKAGE, _sources())


def _sources() -> list[Path]:
    found = []
    for name in MODULES:
        path = PACKAGE / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found
