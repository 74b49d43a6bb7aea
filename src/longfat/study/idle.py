# SPDX-License-Identifier: Apache-2.0
"""Warnings about repetitions that are identical runs, for ``longfat.study.warn``."""

from __future__ import annotations

from collections.abc import Iterator

from longfat.spec.units import Size
from longfat.study.catalog.ccas import CCAS
from longfat.study.models import Experiment, Header
from longfat.study.schema.names import Finding
from longfat.study.study import SweptExperiment
from longfat.study.traffic.algorithm import Algorithm


def idle_repetitions(swept: SweptExperiment, header: Header) -> Iterator[Finding]:
    """Warn about repetitions that would be identical runs: in virtual time they count once."""
    if swept.repetitions == 1:
        return
    idle = sum(not varies(point.experiment, header) for point in swept.points)
    if idle:
        drawing = ", ".join(name for name, cca in CCAS.items() if cca.draws)
        where = "" if idle == len(swept.points) else f" at {idle} of {len(swept.points)} points"
        message = (
            f"{swept.repetitions} repetitions of experiment {swept.id!r} are the same run{where}: no draw "
            "differs between them, and byte-identical runs count once"
        )
        drawing = f"start_jitter of a flow, web traffic, capture_loss, queues such as red and {drawing} draw"
        hint = f"clock_tolerance, drawn phases, {drawing}; or state one repetition"
        yield Finding(("repetitions",), message, hint)


def varies(experiment: Experiment, header: Header) -> bool:
    """Return whether the seed affects more than ports and hash keys of a run in virtual time."""
    topology, probes = experiment.topology, experiment.probes
    used = (
        one.algorithm if isinstance(one.algorithm, Algorithm) else header.algorithms[one.algorithm]
        for one in experiment.traffic
    )
    return (
        experiment.phases == "drawn"
        or experiment.clock_tolerance.value > 0
        or bool(experiment.hosts.processing_time or header.hosts.processing_time)
        or any(one.draws for one in experiment.sent)
        or bool(probes.capture and probes.capture_loss)
        or topology.is_impaired
        or any(queue.draws for _, queue, _ in topology.queues(Size(1500)))
        or any(algorithm.definition.draws for algorithm in used)
    )
