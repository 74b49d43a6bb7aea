# SPDX-License-Identifier: Apache-2.0
"""What always fails is refused before it runs, with the reason; what may go well is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.data.study_folder import StudyFolder
from longfat.guest import traffic
from longfat.study import lint
from longfat.study.load import load_study
from longfat.system.errors import StudyError

STUDY = """\
format: 2
study: extreme
title: What cannot be
algorithms: {reno: {cca: reno}}
hosts: {mtu: 1500 B}
experiments:
  - id: one
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 20 ms}
    flows: [{name: f, from: client1, to: server, algorithm: reno, duration: 5 s}]
"""


def load(tmp_path: Path, *changes: tuple[str, str]) -> None:
    text = STUDY
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    load_study(path)


SLOW, LONG, SHORT, LAST = "10 Mbit/s", "rtt: 20 ms", "duration: 5 s", "duration: 5 s}]"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ([(SHORT, "duration: 50 ms")], "duration: 'f' is never seen: sockets are sampled every 100 ms, the run ends"),
        ([(SHORT, "duration: 1 us")], "'f' is never seen"),
        ([(SLOW, "100 Gbit/s"), (SHORT, "duration: 20 ms")], "'f' is never seen"),
        ([(SHORT, "duration: 5 s, start: 1 s"), (LONG, "rtt: 5900 ms")], "'f' is never seen"),
        ([(SHORT, "duration: 5 s, streams: 1000")], "1000 streams take at least 1064 MiB of memory, but the guest has"),
        ([(LAST, "duration: 5 s, streams: 200}]\n    memory: 256 MiB")], "memory: 200 streams take at least 264 MiB"),
        ([(SHORT, "duration: 5 s, transfer: 1 B")], "'1 B' is out of range; allowed: 100 B to 1024 GiB"),
    ],
)
def test_what_always_fails_is_refused_with_the_reason(
    tmp_path: Path, changes: list[tuple[str, str]], reason: str
) -> None:
    with pytest.raises(StudyError) as caught:
        load(tmp_path, *changes)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [(LONG, "rtt: 25 s"), (SHORT, "duration: 300 s")],
        [(SHORT, "duration: 50 ms, start: 160 ms")],
        [(SHORT, "duration: 5 s, streams: 100")],
    ],
)
def test_what_runs_is_not_refused(tmp_path: Path, changes: list[tuple[str, str]]) -> None:
    load(tmp_path, *changes)


def test_the_block_of_a_stream_is_the_guests() -> None:
    assert lint.BLOCK_BYTES == traffic.BLOCK_BYTES


def test_a_sysctl_that_the_projects_kernel_lacks_is_doubted_with_the_nearest(tmp_path: Path) -> None:
    load(tmp_path, ("mtu: 1500 B", "mtu: 1500 B, sysctls: {net.ipv4.tcp_sak: 1, net.ipv4.conf.all.rp_filter: 0}"))
    path = tmp_path / "study.yaml"
    (warning,) = (one for one in StudyFolder(path.parent).warnings if "sysctls" in one.key)
    assert str(warning).startswith(f"{path}:5: hosts.sysctls.net.ipv4.tcp_sak: the project's kernel has no such sysctl")
    assert warning.hint == "did you mean 'net.ipv4.tcp_sack'?"
