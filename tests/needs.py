# SPDX-License-Identifier: Apache-2.0
"""Needs of tests: packages, programs and free ports, and the time of other processes. Must not assert anything."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import pytest

from longfat.builds.programs import missing_packages

IMAGES = Path(__file__).parents[1] / "images"


def refuse(need: str, reason: str) -> NoReturn:
    """Skip the test for ``reason``, or fail it where LONGFAT_REQUIRE lists ``need``."""
    if need in os.environ.get("LONGFAT_REQUIRE", "").replace(",", " ").split():
        pytest.fail(f"{need} is required: {reason}")
    pytest.skip(reason)


def require_packages(need: str, name: str) -> None:
    """Refuse the test unless the packages of a list in images/ are installed."""
    if missing := missing_packages((IMAGES / name).read_text(encoding="utf-8")):
        refuse(need, f"missing: {', '.join(missing)} (images/{name})")


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nobody uses at present."""
    with ExitStack() as own:
        sockets = [own.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def comes_true(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Return whether a condition becomes true within some seconds."""
    end = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return true


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End a daemon, which ends what it has started; kill its session if it takes longer than a minute."""
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
