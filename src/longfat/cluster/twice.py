# SPDX-License-Identifier: Apache-2.0
"""Compares the nodes of a cluster: a few runs are executed a second time, on other nodes, and must measure the same.

Owns the choice of these runs and the judgement of a node. Must not know a kind of cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from longfat.errors import RigError
from longfat.events import Event, EventSink, Kind, Level
from longfat.execute.results import Results
from longfat.record.measured import measured_digest
from longfat.record.verify import Record, find_records, set_aside

FRACTION = 0.01
LEAST = 5
TWICE, THRICE = "twice", "thrice"
"""Results folders, inside the first one, of the second and the third execution."""
DISTRUSTED = ".distrusted"

Again = Callable[[Mapping[frozenset[str], Sequence[str]], str], None]
"""Executes runs once more, into a folder of that name in the results folder: by the nodes to avoid, the runs' ids."""


def compare_nodes(
    results: Results, records: Mapping[str, Record], nodes: frozenset[str], again: Again, events: EventSink
) -> frozenset[str]:
    """Execute a sample of ``records`` twice; the nodes that are at fault, whose records have been set aside.

    A run of one of the ``nodes`` is repeated on another one. Of two that differ, a third execution decides. Raises
    RigError when that is like neither of them.
    """
    first = {run_id: records[run_id] for run_id in sample(records, nodes)}
    if not first or len(nodes) < 2:
        _say(events, "no run was executed twice: there is one node only", Level.WARNING)
        return frozenset()
    there = _records(results, TWICE)
    missing: dict[frozenset[str], list[str]] = {}
    for run_id, record in first.items():
        if run_id not in there:
            missing.setdefault(frozenset({record.node}), []).append(run_id)
    again(missing, TWICE)
    second = _records(results, TWICE)
    pairs = [(one, second[run_id]) for run_id, one in first.items() if run_id in second]
    differing = [(one, two) for one, two in pairs if _measured(one) != _measured(two)]
    text = f"{len(pairs)} of {len(records)} runs were executed twice, on different nodes"
    if not differing:
        _say(events, f"{text}: identical to the byte" if pairs else "no run could be executed twice", Level.INFO)
        return frozenset()
    _say(events, f"{text}; {len(differing)} differ, and are executed a third time", Level.WARNING)
    involved = frozenset(record.node for pair in differing for record in pair)
    again({involved: [one.run_id for one, _ in differing]}, THRICE)
    third = _records(results, THRICE)
    at_fault = frozenset(_at_fault(one, two, third.get(one.run_id)) for one, two in differing)
    aside = [record for record in records.values() if record.node in at_fault]
    for record in (*aside, *(two for _, two in pairs if two.node in at_fault)):
        set_aside(record.folder, DISTRUSTED)
    names = ", ".join(sorted(at_fault))
    _say(events, f"{names} measures what other nodes do not: its {len(aside)} runs are set aside", Level.ERROR)
    return at_fault


def sample(records: Mapping[str, Record], nodes: frozenset[str]) -> list[str]:
    """The ids of the runs to execute twice: one of each node in turn, chosen by their digests."""
    ok = sorted(run_id for run_id, record in records.items() if record.status == "ok" and record.node in nodes)
    count = max(LEAST, math.ceil(FRACTION * len(ok)))
    by_node: dict[str, list[str]] = {}
    for run_id in ok:
        by_node.setdefault(records[run_id].node, []).append(run_id)
    turns = zip_longest(*(by_node[node] for node in sorted(by_node)))
    return [run_id for run_id in chain.from_iterable(turns) if run_id is not None][:count]


def _at_fault(one: Record, two: Record, third: Record | None) -> str:
    """The node that two others contradict."""
    if third is not None and _measured(third) == _measured(one):
        return two.node
    if third is not None and _measured(third) == _measured(two):
        return one.node
    others = ", ".join(f"{record.folder} by {record.node}" for record in (one, two, third) if record)
    raise RigError(
        f"executions of one run differ, and none is like another: {others}",
        hint="find out which machine is at fault, and start again without it",
    )


def _records(results: Results, name: str) -> dict[str, Record]:
    found = find_records(_raw(results, name))
    return {run_id: record for run_id, record in found.items() if record.status == "ok"}


def _raw(results: Results, name: str) -> Path:
    return results.path / name / "raw"


def _measured(record: Record) -> str:
    return measured_digest(record.folder)


def _say(events: EventSink, message: str, level: Level) -> None:
    events(Event(Kind.STAGE_STARTED, message, level))
