# SPDX-License-Identifier: Apache-2.0
"""Environment of started programs, without variables of the user that would change their behaviour."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from pathlib import Path


def environment_without(prefix: str, kept: Collection[str] = ()) -> dict[str, str]:
    """Return the environment without the variables that begin with ``prefix``, except those in ``kept``."""
    return {name: value for name, value in os.environ.items() if name in kept or not name.startswith(prefix)}


def git(checkout: Path, *arguments: str, seconds: float | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git in a checkout, never in the repository of GIT_DIR or a parent folder.

    The checkout may belong to another user. Raises FileNotFoundError without git, TimeoutExpired.
    """
    own = {"GIT_CEILING_DIRECTORIES": str(checkout.resolve().parent), "GIT_CONFIG_GLOBAL": os.devnull}
    settings = [f"safe.directory={checkout.resolve()}", "core.fsmonitor=false"]
    options = [word for setting in settings for word in ("-c", setting)]
    return subprocess.run(
        ["git", *options, "-C", str(checkout.resolve()), *arguments],
        env=environment_without("GIT_") | own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=seconds,
    )
