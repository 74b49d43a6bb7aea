# SPDX-License-Identifier: Apache-2.0
"""The agent's code as one zip archive, which is sent to a host with each connection."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
MODULES = ("__init__.py", "runspec.py", "errors.py", "lab", "agent", "backends/__init__.py", "backends/host_kernel.py")
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
    """SHA-256 (hex) over the sources in the archive."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _sources() -> list[Path]:
    found = []
    for name in MODULES:
        path = PACKAGE / name
        found += sorted(path.glob("*.py")) if path.is_dir() else [path]
    return found
