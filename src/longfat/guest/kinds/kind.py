# SPDX-License-Identifier: Apache-2.0
"""What the modules of this package have in common, and all of them: each is a kind of traffic (``runspec.KINDS``).

A module has a class ``Traffic``, all traffic of its kind in one run, and a function ``report``, which writes what its
programs reported when all machines of the run have ended. Must not know what they do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from longfat.runspec import KINDS, RunSpec

if TYPE_CHECKING:
    from longfat.guest.run import RunContext


def _named(name: str) -> ModuleType:
    """The module of a kind, not executed yet.

    Not by ``importlib``: once that is executed, the guest's kernel hands out its random numbers in another order, and
    runs with RED or BBR come out otherwise.
    """
    __import__(own := f"{__package__}.{name}")
    return sys.modules[own]


# Here, and not when they are needed: that tells guest/start.py which modules a run takes.
_MODULES = {name: _named(name) for name in KINDS}


class Traffic(Protocol):
    """All traffic of one kind, as far as it is on this machine."""

    @property
    def ports(self) -> Mapping[str, int]:
        """The port of each traffic's server, by the traffic's name."""

    def prepare(self) -> None:
        """Start what has to be there before the measurement: what is sent to."""

    def plan(self) -> None:
        """Put on the time line what is started in the measurement. Called when its start is known."""

    def finish(self) -> None:
        """Wait for the end of every program and complete the raw files. Raises LaboratoryError when one failed."""

    def achieved(self) -> dict[str, Any]:
        """Members of achieved.json: what was read back of the traffic."""


def traffic_of(stage: RunContext) -> tuple[Traffic, ...]:
    """One object for each kind that the run has, in the order in which they are called."""
    return tuple(module.Traffic(stage) for module in _modules_of(stage.spec))


def write_reports(spec: RunSpec, folder: Path) -> None:
    """Write what the programs of all machines reported, from the files that they left in ``folder``.

    Raises ValueError when they said too little.
    """
    for module in _modules_of(spec):
        module.report(spec, folder)


def _modules_of(spec: RunSpec) -> Iterator[ModuleType]:
    """The modules of the kinds that a run has, and that of flows: of these the raw files tell even where there is none.

    The others are not executed: what they import may draw random numbers, and the whole guest draws from one source.
    """
    for name, module in _MODULES.items():
        if name == "flows" or getattr(spec, name):
            yield module
