# SPDX-License-Identifier: Apache-2.0
"""Declared windows: the limits of a run's hosts follow them, the buffers of its sockets are read back."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from longfat.data.study_folder import StudyFolder
from longfat.guest import sockets
from longfat.guest.netlink import attribute
from longfat.plan import build_plan
from longfat.spec.network import buffers_bytes
from longfat.spec.runspec import RunSpec
from longfat.study.load import load_study
from longfat.system.errors import StudyError

STUDY = """\
format: 2
study: windows
title: Windows
algorithms: {{a: {{cca: reno}}}}
hosts: {hosts}
experiments:
  - id: one
    topology: {{kind: dumbbell, rate: 5 Mbit/s, rtt: 4 ms, senders: 2, receivers: 2}}
    flows:
      - {{name: f, from: client1, to: server1, algorithm: a, duration: 1 s{first}}}
      - {{name: g, from: client2, to: server2, algorithm: a, duration: 1 s{second}}}
"""


def write(folder: Path, hosts: str = "{}", first: str = "", second: str = "") -> Path:
    path = folder / "study.yaml"
    path.write_text(STUDY.format(hosts=hosts, first=first, second=second), encoding="utf-8")
    return path


def planned(folder: Path, backend: str = "virtual", **given: str) -> RunSpec:
    (run,) = build_plan(load_study(write(folder, **given)), pins={"backend": backend}).runs
    return run.spec


def limits(spec: RunSpec) -> set[tuple[str | None, str | None]]:
    """Return the limits for receiving and sending that the hosts of a run have."""
    hosts = (node.sysctls for node in spec.nodes if node.role != "router")
    return {(one.get("net.core.rmem_max"), one.get("net.core.wmem_max")) for one in hosts}


def test_the_limits_of_all_hosts_are_those_of_the_largest_windows(tmp_path: Path) -> None:
    spec = planned(tmp_path, first=", window: 2 MiB, send_window: 6 MiB", second=", window: 3 MiB")
    assert limits(spec) == {(str(3 << 19), str(3 << 20))}
    assert [buffers_bytes(spec, flow) for flow in spec.flows] == [(6 << 20, 2 << 20), (3 << 20, 3 << 20)]


@pytest.mark.parametrize("second", ["", ", window: 400 kB"])
def test_small_windows_and_none_leave_the_kernels_own_limits(tmp_path: Path, second: str) -> None:
    assert limits(planned(tmp_path, second=second)) == {(None, None)}


def test_a_machines_own_limits_are_never_planned(tmp_path: Path) -> None:
    assert limits(planned(tmp_path, "mininet", first=", window: 2 MiB")) == {(None, None)}


def test_a_limit_of_the_manifest_stays_and_cuts_with_a_warning(tmp_path: Path) -> None:
    given = {"hosts": "{sysctls: {net.core.rmem_max: 500000}}", "second": ", window: 2 MB"}
    spec = planned(tmp_path, **given)
    assert limits(spec) == {("500000", "1000000")}
    assert buffers_bytes(spec, spec.flows[1]) == (2_000_000, 1_000_000)
    folder = tmp_path / "windows"
    folder.mkdir()
    write(folder, **given)
    (warning,) = StudyFolder(folder).warnings
    assert (warning.line, warning.key) == (5, "hosts.sysctls.net.core.rmem_max")
    assert "cuts windows of 1 experiments, the largest 2 MB in 'one'" in warning.message


@pytest.mark.parametrize(
    ("meaning", "first", "said"),
    [
        (
            "effective",
            ", window: 2302 B",
            "window: 2302 B is less than a kernel makes a socket buffer; allowed: at least",
        ),
        ("requested", ", window: 1151 B", "1151 B is less"),
        ("effective", ", window: 8 kB, send_window: 4 kB", "send_window: 4 kB is less than a kernel makes"),
    ],
)
def test_a_window_below_the_least_buffer_is_refused(tmp_path: Path, meaning: str, first: str, said: str) -> None:
    path = write(tmp_path, hosts=f"{{window_meaning: {meaning}}}", first=first)
    with pytest.raises(StudyError) as caught:
        load_study(path)
    assert said in str(caught.value)


def test_buffers_are_read_of_every_socket_that_is_shown_with_them() -> None:
    def message(source: int, destination: int, *memory: int) -> bytes:
        head = bytearray(sockets.MESSAGE_BYTES)
        sockets.SOCKET_ID.pack_into(head, sockets.ID_OFFSET, source, destination)
        told = attribute(sockets.INET_DIAG_SKMEMINFO, struct.pack("=9I", *memory, *(0,) * 5)) if memory else b""
        return bytes(head) + told

    found = list(sockets.parse_buffers([message(5001, 0, 1, 87_380, 2, 16_384), message(5001, 40_000)]))
    assert found == [sockets.Buffers(5001, 0, receive=87_380, send=16_384)]
