# SPDX-License-Identifier: Apache-2.0
"""Programs of a build: their environment, and the error of a failed one. Must not know what they build."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from longfat.system.errors import RigError

OUTPUT_TAIL_CHARS = 2000


def run_program(*argv: str | Path, hint: str | None = None, **environment: str) -> None:
    """Run a program, from /sbin too. Raises RigError with the end of its output if it fails."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    try:
        done = subprocess.run(
            argv,
            env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise RigError(f"{argv[0]} is not installed", hint=hint) from error
    if done.returncode:
        tail = done.stdout[-OUTPUT_TAIL_CHARS:]
        raise RigError(f"{argv[0]} ended with exit status {done.returncode}:\n{tail}", hint=hint)
