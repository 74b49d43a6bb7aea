# SPDX-License-Identifier: Apache-2.0
"""Kinds of traffic outside the guest: one module with a ``KIND`` for each name in ``longfat.spec.runspec.KINDS``.

The code next to the packets is in ``longfat.guest.kinds``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from longfat.spec.gates import GATES, Evidence, Gate, reasons_of
from longfat.spec.runspec import KINDS as RECORDS
from longfat.study.queues import settings_hold
from longfat.study.traffic.kind import Kind, Section, Table

KINDS: dict[str, Kind] = {name: import_module(f"{__name__}.{name}").KIND for name in RECORDS}
"""Every kind by its name."""

SECTIONS: dict[str, Section[Any, Any]] = {name: kind for name, kind in KINDS.items() if isinstance(kind, Section)}
"""Kinds with their own section of an experiment, by its name."""

TABLES: tuple[Table, ...] = tuple(table for kind in KINDS.values() for table in kind.tables)
"""The tables of the dataset that belong to one kind."""

ALL_GATES: tuple[Gate, ...] = (*GATES, settings_hold, *(gate for kind in KINDS.values() for gate in kind.gates))
"""The gates of every run, of its queues and of its traffic."""

_OF_RECORD: dict[type, Section[Any, Any]] = {RECORDS[name]: section for name, section in SECTIONS.items()}


def section_of(record: object) -> Section[Any, Any]:
    """Return the kind of a record of a RunSpec."""
    return _OF_RECORD[type(record)]


def misses(evidence: Evidence) -> tuple[str, ...]:
    """Return the reasons of all gates why a run is invalid; empty for a valid run."""
    return reasons_of(ALL_GATES, evidence)
