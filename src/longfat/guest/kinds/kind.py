# SPDX-License-Identifier: Apache-2.0
"""The protocol of the modules of this package, each a kind of traffic (``runspec.KINDS``), and the list of all.

A module has a class ``Traffic``, for all traffic of its kind in one run, and a function ``report``, which writes the
reports of its programs after all machines of the run have ended. Must not know what the kinds do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from longfat.spec.runspec import KINDS, RunSpec

if TYPE_CHECKING:
    from longfat.guest.run import RunContext


def _import(name: str) -> ModuleType:
    """Return the module of a kind without executing it.

    Not by ``importlib``: executing it changes the order in which the guest's kernel hands out random numbers, and so
    the results of runs with RED or BBR.
    """
    __import__(own := f"{__package__}.{name}")
    return sys.modules[own]


# At import time, so that guest/start.py finds the modules of a run.
_MODULES = {name: _import(name) for name in KINDS}


class Traffic(Protocol):
    """All traffic of one kind on this machine."""

    @property
    def ports(self) -> Mapping[str, int]:
        """The port of each traffic's server, by the traffic's name."""

    def prepare(self) -> None:
        """Start receivers and servers before the measurement."""

    def plan(self) -> None:
        """Plan the events of the measurement, whose start is known now."""

    def finish(self) -> None:
        """Wait for the end of every program and complete the raw files. Raises GuestError if one failed."""

    def achieved(self) -> dict[str, Any]:
        """Return members of achieved.json, read back from the traffic."""


def traffic_of(context: RunContext) -> tuple[Traffic, ...]:
    """Return an object for each kind of the run, in the order of their calls."""
    return tuple(module.Traffic(context) for module in _modules_of(context.spec))


def write_reports(spec: RunSpec, folder: Path) -> None:
    """Write the reports of the programs of all machines from their files in ``folder``.

    Raises ValueError if reports are incomplete.
    """
    for module in _modules_of(spec):
        module.report(spec, folder)


def _modules_of(spec: RunSpec) -> Iterator[ModuleType]:
    """Yield the modules of the kinds of a run, and always the module of flows, whose raw files every run has.

    Other modules are not executed: their imports may draw random numbers, and the whole guest has one source of them.
    """
    for name, module in _MODULES.items():
        if name == "flows" or getattr(spec, name):
            yield module
