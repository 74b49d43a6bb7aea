# SPDX-License-Identifier: Apache-2.0
"""Declared windows are granted, also above the kernel's own limits, and each way of making connections is read back."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import done, planned

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: example
title: Windows
algorithms: {reno: {cca: reno}}
experiments:
  - id: windows
    topology: {kind: delay, rate: 200 Mbit/s, rtt: 80 ms}
    flows: [{name: flow, from: client1, to: server, algorithm: reno, duration: 3 s, window: 1500 kB, MORE}]
"""


@pytest.mark.parametrize("more", ["streams: 3", "transfer: 30 kB", "send_window: 600 kB"])
def test_the_buffers_are_those_of_the_window(tmp_path: Path, more: str) -> None:
    (spec,) = planned(tmp_path / "study.yaml", STUDY.replace("MORE", more)).values()
    achieved = done(spec, tmp_path / "run").achieved
    sending = 600_000 if "send" in more else 1_500_000
    assert achieved["flows"][0]["send_buffer_bytes"] == sending
    assert achieved["receive_buffers"] == {"flow": 1_500_000}
