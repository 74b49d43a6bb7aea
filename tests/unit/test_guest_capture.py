# SPDX-License-Identifier: Apache-2.0
"""tcpdump's counts, captures without payload, and captures and graphs that end too early."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import pytest

from longfat.guest import capture
from longfat.guest.capture import copy_headers, header_bytes, parse_tcpdump_counts, trace

DATA = Path(__file__).parents[1] / "data"
HEADER = bytes(range(24))


def frame(protocol: int, transport: bytes, options: bytes = b"", offset: int = 0) -> bytes:
    """An Ethernet frame of IPv4 up to and with a transport header."""
    ip = bytes([0x40 | (5 + len(options) // 4)]) + bytes(5) + offset.to_bytes(2, "big") + bytes([64, protocol])
    return bytes(12) + b"\x08\x00" + ip.ljust(20, b"\1") + options + transport


def tcp(words: int) -> bytes:
    """A TCP header of so many 32-bit words."""
    return bytes(12) + bytes([words << 4]) + bytes(4 * words - 13)


HEADS = {
    "TCP without options": frame(6, tcp(5)),
    "TCP with all options": frame(6, tcp(15)),
    "TCP behind IPv4 options": frame(6, tcp(8), options=bytes(8)),
    "UDP": frame(17, bytes(8)),
    "ICMP": frame(1, bytes(8)),
    "a later fragment": frame(17, b"", offset=0x20B9),
    "an unknown transport": frame(132, b""),
    "no IPv4": bytes(12) + b"\x86\xdd",
}


@pytest.mark.parametrize("what", HEADS)
def test_no_byte_of_a_payload_reaches_the_file(what: str, tmp_path: Path) -> None:
    head, payload = HEADS[what], b"\xa0\x31\x35\x9f" * 9
    record = struct.pack("=IIII", 7, 9, len(head) + len(payload), 1514)
    (tmp_path / "f.pcap").write_bytes(HEADER + record + head + payload)
    assert copy_headers(tmp_path / "f.pcap", tmp_path / "copy.pcap", 0.0, Random(1)) == 0
    kept = HEADER + struct.pack("=IIII", 7, 9, len(head), 1514) + head
    assert (tmp_path / "copy.pcap").read_bytes() == kept


def test_a_frame_that_the_capture_cut_short_is_copied_as_far_as_it_goes() -> None:
    whole = HEADS["TCP with all options"]
    assert all(header_bytes(whole[:length]) <= length for length in range(len(whole)))


@pytest.mark.parametrize(
    ("file", "dropped_by_kernel", "captured", "dropped"),
    [("complete", 0, 109, 0), ("complete", 12, 109, 12), ("ended-too-early", 0, 0, 1427)],
)
def test_packets_that_the_kernel_dropped_or_tcpdump_never_fetched_count_as_dropped(
    file: str, dropped_by_kernel: int, captured: int, dropped: int
) -> None:
    text = (DATA / f"tcpdump-4.99.3-{file}.txt").read_text()
    text = text.replace("0 packets dropped by kernel", f"{dropped_by_kernel} packets dropped by kernel")
    assert parse_tcpdump_counts(text) == {"captured": captured, "dropped": dropped}


@pytest.mark.parametrize("cut", ["owin", "tput"])
def test_a_graph_without_its_end_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    def tcptrace(_argv: list[str], *, cwd: Path, **_options: object) -> None:
        for kind in ("owin", "tput"):
            end = "" if kind == cut else "\ngo\n"
            (cwd / f"a2b_{kind}.xpl").write_text(f"red\ndot 1000000000.200000 5{end}")

    monkeypatch.setattr(capture.subprocess, "run", tcptrace)
    with pytest.raises(ValueError, match=rf"incomplete a2b_{cut}\.xpl of f\.pcap"):
        trace(tmp_path / "f.pcap", tmp_path / "graphs")


@pytest.mark.parametrize("missing", [1, 100])
def test_a_capture_that_ends_within_a_packet_is_an_error_that_names_it(tmp_path: Path, missing: int) -> None:
    head = HEADS["TCP with all options"]
    record = struct.pack("=IIII", 1, 2, len(head), 9014) + head
    (tmp_path / "f.pcap").write_bytes((HEADER + 2 * record)[:-missing])
    with pytest.raises(ValueError, match=r"f\.pcap ends within a packet"):
        copy_headers(tmp_path / "f.pcap", tmp_path / "rest.pcap", 20, Random(1))
