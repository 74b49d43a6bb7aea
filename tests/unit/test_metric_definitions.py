# SPDX-License-Identifier: Apache-2.0
"""The digest of a metric's definition: what it covers, and what may change without it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from longfat.metrics import METRICS
from longfat.metrics.definitions import definition_digest

SOURCE = '''
from longfat.metrics.data import FlowRows
from longfat.metrics.registry import metric

FACTOR = 2


def helper(value):
    return value * FACTOR


@metric("s", "a number of ours", name="ours")
def ours(rows: FlowRows) -> float:
    """What it is."""
    return helper(len(rows))
'''


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leave the registry as it was."""
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)


def digest_of(source: str, folder: Path, number: int) -> str:
    """The digest of the metric ``ours`` in a module with this source."""
    name = f"longfat_metrics_of_test_{number}"
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    METRICS.pop("ours", None)
    spec.loader.exec_module(module)
    return definition_digest(METRICS["ours"])


def test_every_metric_of_the_project_has_a_definition_of_its_own() -> None:
    digests = [definition_digest(metric) for metric in METRICS.values()]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("What it is.", "What else it is.", True),
        ('"a number of ours"', '"a quantity of ours"', True),
        ("    return helper", "    # a comment\n    return helper", True),
        ("helper(len(rows))", "helper(len(rows) + 1)", False),
        ("value * FACTOR", "value / FACTOR", False),
        ("FACTOR = 2", "FACTOR = 3", False),
    ],
)
def test_what_it_does_and_what_it_leads_to_counts_and_words_do_not(
    tmp_path: Path, before: str, after: str, same: bool
) -> None:
    one = digest_of(SOURCE, tmp_path, 1)
    assert before in SOURCE
    assert (digest_of(SOURCE.replace(before, after), tmp_path, 2) == one) is same
