# SPDX-License-Identifier: Apache-2.0
"""The input of gates: the RunSpec of a run, and the settings that were read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from longfat.spec.network import Port, ports
from longfat.spec.runspec import Flow, RunSpec


@dataclass(frozen=True)
class Evidence:
    """RunSpec, ``achieved.json``, the list of ``flows.json``, and the end of a run.

    ``program_reports`` has the reports of the programs of other traffic kinds, by the name of their table.
    """

    spec: RunSpec
    achieved: Mapping[str, Any]
    reports: Sequence[Mapping[str, Any]]
    program_reports: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    end_us: int | None = None

    @cached_property
    def interfaces(self) -> dict[str, Mapping[str, Any]]:
        """Settings of each interface as read back, by its name."""
        return {item["interface"]: item for item in self.achieved["interfaces"]}

    @cached_property
    def flows(self) -> dict[str, Mapping[str, Any]]:
        """Settings of each flow's sockets as read back, by the flow's name."""
        return {item["flow"]: item for item in self.achieved["flows"]}

    def present_ports(self) -> Iterator[tuple[Port, Mapping[str, Any]]]:
        """Yield the declared interfaces with their read-back; the first gate reports missing ones."""
        for port in ports(self.spec):
            if port.name in self.interfaces:
                yield port, self.interfaces[port.name]

    def present_flows(self) -> Iterator[tuple[Flow, Mapping[str, Any]]]:
        """Yield the declared flows with the read-back of their sockets; the first gate reports missing ones."""
        for flow in self.spec.flows:
            if flow.name in self.flows:
                yield flow, self.flows[flow.name]


Gate = Callable[[Evidence], Iterator[str]]


def reasons_of(gates: Iterable[Gate], evidence: Evidence) -> tuple[str, ...]:
    """Return the reasons of all gates, empty for a valid run. Unreadable data is also a reason."""
    reasons: list[str] = []
    for gate in gates:
        try:
            reasons.extend(gate(evidence))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            reasons.append(f"gate {gate.__name__} cannot read what was achieved: {error!r}")
    return tuple(reasons)
