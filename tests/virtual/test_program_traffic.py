# SPDX-License-Identifier: Apache-2.0
"""Programs of a study's own in a guest: what they send is counted on the wire, and one that spins is found out."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from guests import RECEIVE, delay_path, run, virtual

from longfat.backends import guest_process, own_files
from longfat.dataset.parse import parse_run
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Probes, Program, RunSpec
from longfat.study.traffic import misses
from longfat.system.errors import SettledError

pytestmark = pytest.mark.virtual

RATE_BPS = 1_000_000
HEADERS_BYTES = 28
PAYLOAD_BYTES = 972  # and headers: 8 ms of the rate, with those of the link beside
PACKETS = 100
SEND = """
import os, socket, sys, time
address, port, packets, size = sys.argv[1], *map(int, sys.argv[2:])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(packets):
        sender.sendto(bytes(size), (address, port))
        time.sleep(0.01)
with open("counts.csv", "w") as counts:
    print("sent", packets, sep=",", file=counts)
print("user", os.getuid(), "groups", os.getgroups())
"""
SPIN = "while True: pass"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A hundred datagrams. The scripts are in the cache folder."""
    folder, files = tmp_path_factory.mktemp("files"), {}
    for name, text in {"send.py": SEND, "receive.py": RECEIVE, "spin.py": SPIN}.items():
        (folder / name).write_text(text)
        files[name] = hashlib.sha256(text.encode()).hexdigest()
        own_files.keep({files[name]: folder / name}, virtual().jail)
    send = ("python3", "send.py", "{address}", "{port}", str(PACKETS), str(PAYLOAD_BYTES))
    receive = ("python3", "receive.py", "{port}")
    return Program("own", "client1", "server", send, receive, 2_000_000, files=files, keep=("counts.csv",))


def spec_of(one: Program) -> RunSpec:
    """The programs on a path of 1 Mbit/s and 20 ms."""
    probes = Probes(capture=("own",), capture_at=("receiver",))
    return delay_path(RATE_BPS, 20_000, 50, probes=probes, programs=(one,))


def reasons(spec: RunSpec, folder: Path) -> tuple[str, ...]:
    parsed = parse_run(folder, "id", spec)
    return misses(Evidence(spec, parsed.achieved, parsed.reports, parsed.told, parsed.end_us))


@pytest.fixture(scope="module")
def folder(own: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run, which no test writes to."""
    return run(spec_of(own), tmp_path_factory.mktemp("own") / "run")


def test_every_packet_of_a_program_is_counted_on_the_wire(own: Program, folder: Path) -> None:
    assert reasons(spec_of(own), folder) == ()
    (told,) = json.loads((folder / "programs.json").read_text())
    assert (told["received_packets"], told["uncounted_packets"]) == (PACKETS, 0)
    assert told["payload_bytes"] == PACKETS * PAYLOAD_BYTES
    assert told["received_bytes"] == PACKETS * (PAYLOAD_BYTES + HEADERS_BYTES)
    records = PACKETS * (16 + 42)  # Ethernet, IPv4 and UDP
    assert (folder / "captures/own@receiver.pcap").stat().st_size == 24 + records
    assert (folder / "programs/own/counts.csv").read_text() == f"sent,{PACKETS}\n"


def test_a_program_has_the_rights_of_nobody(folder: Path) -> None:
    programs: list[dict[str, Any]] = json.loads((folder / "achieved.json").read_text())["programs"]
    (sender,) = (item for item in programs if item["role"] == "send")
    assert sender["said"] == "user 65534 groups []\n"
    assert (sender["status"], sender["asked"]) == (0, False)


def test_a_program_that_fails_makes_its_run_invalid_in_its_own_words(own: Program, tmp_path: Path) -> None:
    spec = spec_of(dataclasses.replace(own, send=("python3", "absent.py")))
    found = reasons(spec, run(spec, tmp_path / "run"))
    assert any("status 2" in reason and "absent.py" in reason for reason in found)
    assert any("counts.csv" in reason for reason in found)


def test_a_receiver_without_a_socket_fails_the_run(own: Program, tmp_path: Path) -> None:
    spec = spec_of(dataclasses.replace(own, receive=("sh", "-c", "echo no; exit 3")))
    outcome = json.loads((run(spec, tmp_path / "run") / "outcome.json").read_text())
    assert outcome["status"] == "failed"
    assert "receiving program of own ended with status 3 before it had a socket: no" in outcome["reason"]


def test_a_program_that_spins_is_named_and_never_tried_again(
    own: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(guest_process, "STILL_CPU_S", 1.5)
    with pytest.raises(SettledError, match=r"virtual clock stood still(?s:.*)while every program waits: own"):
        run(spec_of(dataclasses.replace(own, send=("python3", "spin.py"))), tmp_path / "run")
