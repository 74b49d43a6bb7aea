# SPDX-License-Identifier: Apache-2.0
"""The choice of a sample of rows, and the comparison of a repeated run with its row."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from longfat.dataset.load import Dataset, Run
from longfat.evidence.collect import key_for, value_of
from longfat.evidence.rows import Row, ValueKey, canonical
from longfat.metrics import METRICS

Item = TypeVar("Item")
LEAST_SHARE = 20  # runs of the smallest sample in percent


def sample_of(items: Sequence[tuple[str, str, Item]], wanted: str, seed: int) -> list[Item]:
    """Draw a number of items, or a percentage (``5%``, at least 20), by the seed.

    Each item has a group and a name; the sample takes one item of every group, then a second one, and so on. It does
    not depend on the order of items. Raises ValueError.
    """
    number = float(wanted.removesuffix("%"))
    if number <= 0 or (not wanted.endswith("%") and number != int(number)):
        raise ValueError(f"{wanted!r} is not a sample; allowed: a number of runs, or a percentage such as 5%")
    count = max(LEAST_SHARE, round(number * len(items) / 100)) if wanted.endswith("%") else int(number)
    drawn = sorted(items, key=lambda item: hashlib.sha256(f"{seed} {item[1]}".encode()).hexdigest())
    before: Counter[str] = Counter()
    turns = []
    for group, _, item in drawn:
        turns.append((before[group], item))
        before[group] += 1
    return [item for _, item in sorted(turns, key=lambda turn: turn[0])[:count]]


def difference(row: Row, dataset: Dataset, run: Run) -> str | None:
    """Return the first difference between a run and its row, a value or the digest of measurements; None if equal.

    Values of a metric whose definition has changed are not compared.
    """
    if row.measured is None or run.status != "ok":
        before, now = (reason or "valid" for reason in (row.reason, run.reason))
        return None if before == now else f"the run is {before} in the evidence and {now} here"
    for name, stored in row.values.items():
        key = ValueKey.read(name)
        if key.metric not in METRICS:
            continue
        selection = key.selection(run.experiment)
        if key_for(selection) != key:
            continue
        known, required = METRICS[key.metric].parameters, {*METRICS[key.metric].required} - {"flow"}
        if not required <= {*selection.parameters} <= {*known}:
            return f"{name} has parameters that its metric lacks: {', '.join(known) or 'none'}"
        again = canonical(value_of(dataset, run, selection))
        if again != stored:
            return f"{name} is {stored!r} in the evidence and {again!r} here"
    if run.measured != row.measured:
        digests = f"{row.measured[:16]} in the evidence and {str(run.measured)[:16]} here"
        return f"every value is equal, but the digest of the measurements is {digests}"
    return None
