# SPDX-License-Identifier: Apache-2.0
"""Kinds of traffic as all but the guest see them: one module each, by the names of ``longfat.runspec.KINDS``.

Each module has a ``KIND``. What runs beside the packets is in ``longfat.guest.kinds``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from longfat.gates import GATES, Evidence, Gate, reasons_of
from longfat.queues import settings_hold
from longfat.runspec import KINDS as RECORDS
from longfat.traffic.kind import Kind, Section, Table

KINDS: dict[str, Kind] = {name: import_module(f"{__name__}.{name}").KIND for name in RECORDS}
"""Every kind by its name."""

SECTIONS: dict[str, Section[Any, Any]] = {name: kind for name, kind in KINDS.items() if isinstance(kind, Section)}
"""Those that have a section of an experiment to themselves, which has their name."""

TABLES: tuple[Table, ...] = tuple(table for kind in KINDS.values() for table in kind.tables)
"""The tables of the dataset that are of one kind alone."""

ALL_GATES: tuple[Gate, ...] = (*GATES, settings_hold, *(gate for kind in KINDS.values() for gate in kind.gates))
"""The gates of every run, of its queues and of its traffic."""

_OF_RECORD: dict[type, Section[Any, Any]] = {RECORDS[name]: section for name, section in SECTIONS.items()}


def section_of(record: object) -> Section[Any, Any]:
    """The kind of what stands in a RunSpec."""
    return _OF_RECORD[type(record)]


def misses(evidence: Evidence) -> tuple[str, ...]:
    """Why a run does not count, by every gate; empty for a valid run."""
    return reasons_of(ALL_GATES, evidence)
