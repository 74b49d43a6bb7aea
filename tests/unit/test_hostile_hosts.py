# SPDX-License-Identifier: Apache-2.0
"""Answers of workers and of a lab's hosts: used whole, or a failure of that host with its name."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import cable_spec
from hypothesis import given, settings
from stress import hosts
from test_no_traceback import CHANCES, ROUNDS, Play, playing

from longfat.backends import collect
from longfat.backends.collect import MAX_BYTES, MAX_DEPTH, MAX_HEADER_BYTES
from longfat.backends.testbed.connect import connection
from longfat.backends.testbed.connect.answers import HostFailed, checked, read_message, understood
from longfat.backends.testbed.connect.connection import Connections
from longfat.backends.testbed.connect.join import join_parts
from longfat.execute.attempt import Outcome
from longfat.execute.cluster.session import _understood
from longfat.system.errors import RigError

CARD = {
    "card": "eth1",
    "address": "02:00:00:00:00:01",
    "max_mtu_bytes": 9000,
    "speed_bps": None,
    "base": None,
    "pause": False,
}
LOOK: dict[str, Any] = {
    "kernel": {"release": "6.12", "ccas": ["reno"], "features": [], "reasons": []},
    "build": "ab",
    "programs": {"tc": None},
    "sysctls": ["net.ipv4.tcp_sack"],
    "cards": {"one": CARD},
}


@pytest.mark.parametrize(
    ("verb", "value"),
    [("here", 6), ("clock", -3), ("clock", 2**63), ("clock", "1"), ("collect", MAX_BYTES + 1), ("collect", True),
     ("paths", {"0": "7"}), ("paths", {"zero": 7}), ("end", {}), ("done", [1]), ("ready", {"nodes": []}),
     *(("look", {**LOOK, "cards": {"a": {key: CARD[key] for key in CARD if key != gone}}}) for gone in CARD),
     *(("look", {**LOOK, key: value}) for key in LOOK for value in (None, 3, ["x", 1], {"a": 1}))],
)  # fmt: skip
def test_an_answer_of_another_form_is_the_failure_of_its_host(verb: str, value: object) -> None:
    with pytest.raises(HostFailed) as caught:
        checked(verb, read_message(json.dumps({verb: value}).encode(), "h2"), "h2")
    assert caught.value.where == "h2"


@pytest.mark.parametrize(
    "line",
    [b'"end"', b"{}", b'{"end": NaN}', b'{"end": -Infinity}', b'{"a": ' * 9000, b"{" + b"\xc3", b'{"end":null}x'],
)
def test_a_line_that_is_no_message_is_the_failure_of_its_host(line: bytes) -> None:
    with pytest.raises(HostFailed) as caught:
        read_message(line, "h3")
    assert caught.value.where == "h3"


def test_settings_that_cannot_be_read_are_the_failure_of_the_hosts() -> None:
    with pytest.raises(HostFailed) as caught, understood("a, b"):
        _ = {}["delay_us"]  # type: ignore[var-annotated]
    assert caught.value.where == "a, b"


@pytest.mark.parametrize(
    "then",
    [
        "exec sleep 30",
        "exec yes no",
        "exec head -c 99999999 /dev/zero",
        "exec sed -u s/x/y/ /dev/zero",
        "cat >/dev/null; exit",
    ],
)
def test_a_host_that_is_silent_floods_or_ends_is_lost_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for limit in ("ANSWER_S", "GREETING_S", "BEAT_S"):
        monkeypatch.setattr(connection, limit, 0.3)
    (tmp_path / "ssh").write_text(f'#!/bin/sh\necho \'{{"here": "6"}}\'\n{then}\n', encoding="ascii")
    (tmp_path / "ssh").chmod(0o755)
    with pytest.raises(HostFailed) as caught, Connections([hosts.HOST], tmp_path, b"c" * 500_000) as connections:
        connections.ask("look", 0.3)
    assert caught.value.where == "sender"


def archive_of(name: str, comment: int = 0, kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo(name)
        entry.type, entry.size, entry.linkname = kind, size, "/etc/passwd"
        entry.pax_headers = {"comment": "x" * comment} if comment else {}
        archive.addfile(entry, io.BytesIO(bytes(size)))
    return gzip.compress(content.getvalue()) if comment else content.getvalue()


@pytest.mark.parametrize(
    "archive",
    [b"no archive", archive_of("../above"), archive_of("/absolute"), archive_of("a/../../b"), archive_of("two\nlines"),
     *(archive_of("x", kind=kind) for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)),
     archive_of("large", size=40_000), archive_of("d/" * MAX_DEPTH + "f"), archive_of("d/" * 3000 + "f"),
     archive_of("\x9b31m"), archive_of("f", 2 * MAX_HEADER_BYTES)],
)  # fmt: skip
def test_an_archive_of_anything_but_few_plain_files_inside_the_folder_is_refused(
    archive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "MAX_BYTES", 10_240)
    with pytest.raises(RigError):
        collect.unpack(io.BytesIO(archive), tmp_path / "new")
    assert not any((tmp_path / "new").iterdir()) and len([*tmp_path.iterdir()]) == 1


def test_a_compressed_archive_is_unpacked(tmp_path: Path) -> None:
    collect.unpack(io.BytesIO(archive_of("d/f", 10)), tmp_path / "new")
    assert (tmp_path / "new/d/f").read_bytes() == b""


@pytest.mark.parametrize("returned", [None, (), (Outcome(None, 1.0),), (None, b""), (Outcome(None, 1.0), "x"), b"x"])
def test_a_worker_that_returns_something_else_is_refused(returned: object) -> None:
    with pytest.raises(RigError) as caught:
        _understood(returned, "run-1")
    assert caught.value.where == "run-1"


@pytest.mark.parametrize("text", ["[]", "7", '{"nodes": 3}', '{"nodes": {}, "interfaces": 1}', "[" * 5000])
def test_files_of_a_host_that_make_no_run_are_refused(tmp_path: Path, text: str) -> None:
    part = tmp_path / "part"
    for name in ("iperf", "captures", "outstanding", "throughput"):
        (part / name).mkdir(parents=True)
    (part / "achieved.json").write_text(text, encoding="ascii")
    (tmp_path / "run").mkdir()
    with pytest.raises(RigError):
        join_parts(cable_spec(), {"h": part}, tmp_path / "run", {})


hostilities = playing(hosts.prepare)


@settings(ROUNDS, max_examples=25)
@given(chance=CHANCES)
def test_any_answer_is_used_whole_or_refused(hostilities: Play, chance: Random) -> None:
    assert hostilities(chance)
