# SPDX-License-Identifier: Apache-2.0
"""The plan: the content of ``lock.json``. Must not know how runs are derived or executed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from longfat.spec.plain import canonical_json
from longfat.spec.runspec import RunSpec, Scalar
from longfat.system.identity import KernelSource

LOCK_FORMAT = 1


@dataclass(frozen=True)
class PlannedRun:
    """One entry of the lock: a repetition (from 1) of a scenario. Quantities in ``factors`` are base units.

    Entries of two experiments that share their draws and need the same run have the same ``run_id``.
    """

    run_id: str
    scenario: str
    experiment: str
    factors: dict[str, Scalar]
    repetition: int
    spec: RunSpec


@dataclass(frozen=True)
class Excluded:
    """A point that the backend leaves out, with its reason."""

    experiment: str
    factors: dict[str, Scalar]
    reason: str


@dataclass(frozen=True)
class Plan:
    """All runs of a study under one profile and one stack, in the order of their execution.

    ``kernels`` has the source of each kernel in the pins that the project built, by its digest.
    """

    study: str
    profile: str
    stack: str
    seed: int
    manifest_sha256: str
    claims_sha256: str
    pins: dict[str, str]
    runs: tuple[PlannedRun, ...]
    excluded: tuple[Excluded, ...] = field(default=())
    kernels: dict[str, KernelSource] = field(default_factory=dict)
    format: int = LOCK_FORMAT

    def to_json(self) -> str:
        """Format the text of ``lock.json``: canonical JSON and a final newline, without empty fields of kernels."""
        data = dataclasses.asdict(self)
        data["kernels"] = {
            digest: {name: value for name, value in source.items() if value not in ({}, "")}
            for digest, source in data["kernels"].items()
        }
        return canonical_json(data) + "\n"

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        """Build from the plain data of a lock. Raises KeyError, TypeError or ValueError for other data."""
        if data["format"] != LOCK_FORMAT:
            raise ValueError(f"format {data['format']!r}, and this version reads {LOCK_FORMAT}")
        runs = tuple(_planned_run(run) for run in data["runs"])
        excluded = tuple(Excluded(**point) for point in data["excluded"])
        kernels = {digest: KernelSource(**source) for digest, source in data["kernels"].items()}
        return cls(**{**data, "runs": runs, "excluded": excluded, "kernels": kernels})

    def source_of(self, run: PlannedRun) -> KernelSource | None:
        """Return the source of a run's kernel, if the project built it."""
        return self.kernels.get(run.spec.pins.get("kernel", ""))


def _planned_run(data: dict[str, Any]) -> PlannedRun:
    spec = RunSpec.from_dict(data["spec"])
    if spec.run_id != data["run_id"]:
        raise ValueError(f"run {data['scenario']} no. {data['repetition']} does not have the digest of its spec")
    return PlannedRun(**{**data, "spec": spec})
