# SPDX-License-Identifier: Apache-2.0
"""The part of a run on another machine: a RunSpec as JSON comes in, an archive of the sealed record goes out.

Owns the backend of the worker process, which is opened once. Must not know how the worker was started.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.backends.protocol import Backend
from longfat.backends.registry import open_backend
from longfat.execute.attempt import Attempt, Outcome, attempt_run, node_name
from longfat.execute.record.archive import pack
from longfat.execute.study import require_executable
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError

_opened: dict[str, Backend] = {}
# A backend is opened once, and two threads of Python 3.11 cannot parse code for its digests at the same time.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Order:
    """An attempt in plain data, with the backend and the settings that open it."""

    name: str
    spec: str
    number: int
    last: bool
    repeats: bool
    backend: str
    settings: Mapping[str, Any]


def execute_order(order: Order) -> tuple[Outcome, bytes | None]:
    """Execute an attempt; return its outcome, and the archive of its record if there is one.

    Raises RigError with the name of this machine if the run cannot be executed here as it was planned.
    """
    spec = RunSpec.from_json(order.spec)
    try:
        with _one_at_a_time:
            backend = _backend(order.backend, order.settings)
            require_executable(backend, [spec])
    except RigError as error:
        raise RigError(error.message, where=node_name(), hint=error.hint or "use the same version there") from error
    attempt = Attempt(order.name, spec, order.number, order.last, order.repeats)
    with tempfile.TemporaryDirectory(prefix="longfat-run-") as folder:
        outcome = attempt_run(backend, attempt, Path(folder))
        record = Path(folder) / order.name
        return outcome, pack(record) if record.exists() else None


def _backend(name: str, settings: Mapping[str, Any]) -> Backend:
    """Return the backend, opened by the first run of these settings."""
    key = repr((name, sorted(settings.items())))
    if key not in _opened:
        _opened[key] = open_backend(name, dict(settings), say=lambda line: None)
    return _opened[key]
