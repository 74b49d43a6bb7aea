# SPDX-License-Identifier: Apache-2.0
"""The bench: failed runs, and the printed result."""

from __future__ import annotations

import io
import json

import pytest
from fake_backend import FakeBackend
from rich.console import Console

from longfat.cli.benchmark import run
from longfat.cli.benchmark.run import Wanted, run_bench
from longfat.system.errors import RigError


@pytest.mark.parametrize("as_text", [True, False])
def test_the_result_has_every_timing_and_a_note_for_a_missing_peer(
    monkeypatch: pytest.MonkeyPatch, as_text: bool
) -> None:
    def opened(name: str, settings: object, say: object) -> FakeBackend:
        if name in ("ns2", "mininet"):
            raise RigError("not installed")
        return FakeBackend(wall_seconds=0.05)

    monkeypatch.setattr(run, "open_backend", opened)
    text = io.StringIO()
    run_bench(Wanted(("1g-1500",), repeats=2), Console(file=text, width=200), as_text=as_text)
    assert "ns2: not installed" in text.getvalue()
    if not as_text:
        rows = json.loads(text.getvalue())["rows"]
        assert [(row["where"], row["seconds"]) for row in rows] == [("virtual", 10), ("ns3", 1.0)]
        assert all(row["timing"]["wall_s"] >= 0.05 for row in rows)
