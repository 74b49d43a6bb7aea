# SPDX-License-Identifier: Apache-2.0
"""The bench: timing, and the printed result."""

from __future__ import annotations

import io
import json

import pytest
from fake_backend import FakeBackend

from longfat.cli import bench
from longfat.cli.console import Output
from longfat.system.errors import RigError


def test_the_result_has_every_timing_and_a_note_for_a_missing_peer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(name: str, settings: object, say: object) -> FakeBackend:
        if name in ("ns2", "mininet"):
            raise RigError("not installed")
        return FakeBackend(wall_seconds=0.05)

    monkeypatch.setattr(bench, "open_backend", opened)
    text = io.StringIO()
    bench.bench(Output(as_json=True, file=text, width=200), cases="1g-1500", repeats=2)
    assert "ns2: not installed" in text.getvalue()
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["where"], row["seconds"]) for row in rows] == [("virtual", 10), ("ns3", 1.0)]
    assert all(row["wall_s"] >= 0.05 for row in rows)
