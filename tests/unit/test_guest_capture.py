# SPDX-License-Identifier: Apache-2.0
"""tcpdump's command line and counts, captures that lose packets, and tcptrace's graphs."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from random import Random

import pytest

from longfat.guest import capture
from longfat.guest.capture import (
    Packets,
    copy_headers,
    header_bytes,
    outstanding_data,
    parse_tcpdump_counts,
    red_points,
    tcpdump_command,
    thinned,
    throughput,
    trace,
)

DATA = Path(__file__).parents[1] / "data"
OUTSTANDING = DATA / "tcptrace-6.6.7-outstanding.xpl"
THROUGHPUT = DATA / "tcptrace-6.6.7-throughput.xpl"
ORIGIN_US = 1_000_000_000_100_000
HEADER = bytes(range(24))


def test_both_directions_of_one_traffic_are_captured_with_headers_only() -> None:
    command = tcpdump_command("client1-eth0", Packets(("10.0.0.1", "10.0.2.1"), 5002), Path("f.pcap"))
    assert " ".join(command) == (
        "tcpdump -i client1-eth0 -s 96 -B 16384 -n -Z root -w f.pcap (host 10.0.0.1 or host 10.0.2.1) and port 5002"
    )


def test_later_fragments_between_the_hosts_are_captured_where_datagrams_may_have_some() -> None:
    assert Packets(("10.0.0.1", "10.0.2.1"), 4433, fragments=True).expression == (
        "((host 10.0.0.1 or host 10.0.2.1) and port 4433) "
        "or (host 10.0.0.1 and host 10.0.2.1 and ip[6:2] & 0x1fff != 0)"
    )


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


@pytest.mark.parametrize("length", range(len(HEADS["TCP with all options"])))
def test_a_frame_that_the_capture_cut_short_is_copied_as_far_as_it_goes(length: int) -> None:
    cut = HEADS["TCP with all options"][:length]
    assert header_bytes(cut) <= length


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


def test_a_tcpdump_without_counts_is_an_error_with_its_output() -> None:
    with pytest.raises(ValueError, match="x-eth0: No such device exists"):
        parse_tcpdump_counts("tcpdump: x-eth0: No such device exists\n")


def test_a_graph_has_one_point_for_each_packet_of_the_sender_in_the_order_of_time() -> None:
    points = list(outstanding_data(OUTSTANDING, ORIGIN_US))
    assert len(points) == 33
    assert points[:4] == [(32_333, 1), (32_483, 61), (32_556, 9009), (32_628, 17_957)]
    assert points[-1] == (190_893, 1)
    assert max(value for _time, value in points) == 62_637
    assert points == sorted(points, key=lambda point: point[0])
    assert "yellow\ndot 1000000000.132333 53688\n" in OUTSTANDING.read_text()  # the window is another colour
    assert (32_333, 53_688) not in points


def test_a_colour_is_on_the_line_of_its_point_or_on_the_line_before() -> None:
    lines = [b"dot 12.000345 8948 red\n", b"dot 12.000400 7 blue\n", b"red\n", b"dot 12.000500 6 blue\n"]
    assert list(red_points(lines, 12_000_000)) == [(345, 8948)]
    assert list(red_points([b"red\n", b"line 12.000345 9 12.000300 8\n", b"dot 12.000400 7\n"], 0)) == []


def test_throughput_is_the_average_of_a_block_of_segments_and_not_that_since_the_start() -> None:
    assert "blue\ndot 1000000000.990606 70498252\n" in THROUGHPUT.read_text()
    # 3500 segments of 8948 bytes in 252992 us; the first block holds slow start.
    assert list(throughput(THROUGHPUT, ORIGIN_US)) == [(637_614, 49_269_436), (890_606, 123_755_106)]


def test_of_the_points_of_an_interval_the_last_is_left() -> None:
    points = [(3, 1), (9_999, 2), (10_000, 3), (10_001, 4), (45_000, 5)]
    assert list(thinned(points, 10_000)) == [(9_999, 2), (10_001, 4), (45_000, 5)]
    assert list(thinned([], 10_000)) == []


def test_the_larger_graph_is_the_sending_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tcptrace(argv: list[str], *, cwd: Path, **_options: object) -> None:
        assert argv[:-1] == ["tcptrace", "-N", "-T", "-A500", "-y", "-n"]
        assert Path(argv[-1]).is_absolute()
        (cwd / "a2b_owin.xpl").write_text("red\ndot 1000000000.200000 5\ngo\n")
        (cwd / "a2b_tput.xpl").write_text("red\ndot 1000000000.200000 6\n" * 9 + "go\n")
        (cwd / "b2a_owin.xpl").write_text("red\ndot 1000000000.200000 7\n" * 2 + "go\n")
        (cwd / "b2a_tput.xpl").write_text("red\ndot 1000000000.200000 8\ngo\n")

    monkeypatch.setattr(capture.subprocess, "run", tcptrace)
    graphs = trace(tmp_path / "f.pcap", tmp_path / "graphs")
    assert list(outstanding_data(graphs.outstanding, ORIGIN_US)) == [(100_000, 7), (100_000, 7)]
    assert list(throughput(graphs.throughput, ORIGIN_US)) == [(100_000, 8)]


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


def test_a_capture_without_a_connection_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture.subprocess, "run", lambda *_args, **_options: subprocess.CompletedProcess([], 0))
    with pytest.raises(ValueError, match=r"tcptrace found no connection in f\.pcap"):
        trace(tmp_path / "f.pcap", tmp_path / "graphs")


def write_capture(path: Path, count: int) -> list[bytes]:
    """A capture of ``count`` packets with headers of different lengths and no payload; the records in it."""
    heads = [frame(6, tcp(5 + number % 11)) for number in range(count)]
    records = [struct.pack("=IIII", 1, number, len(head), 9014) + head for number, head in enumerate(heads)]
    path.write_bytes(HEADER + b"".join(records))
    return records


def left_in(path: Path, records: list[bytes]) -> list[int]:
    """Numbers of the records that a capture still holds, which must stand there whole and in order."""
    data, left = path.read_bytes()[len(HEADER) :], []
    for number, record in enumerate(records):
        if data.startswith(record):
            left.append(number)
            data = data[len(record) :]
    assert data == b""
    return left


def test_a_lossy_capture_loses_its_share_of_whole_packets_by_its_seed(tmp_path: Path) -> None:
    records = write_capture(tmp_path / "f.pcap", 5000)
    left = []
    for seed in ("1 f", "1 f", "2 f"):
        removed = copy_headers(tmp_path / "f.pcap", tmp_path / "rest.pcap", 20, Random(seed))
        assert (tmp_path / "rest.pcap").read_bytes().startswith(HEADER)
        left.append(left_in(tmp_path / "rest.pcap", records))
        assert len(left[-1]) == 5000 - removed
        assert 900 < removed < 1100
    assert left[0] == left[1] != left[2]


@pytest.mark.parametrize("missing", [1, 70])
def test_a_capture_that_ends_within_a_packet_is_an_error_that_names_it(tmp_path: Path, missing: int) -> None:
    records = write_capture(tmp_path / "f.pcap", 30)
    assert len(records[-1]) > 70
    (tmp_path / "f.pcap").write_bytes((tmp_path / "f.pcap").read_bytes()[:-missing])
    with pytest.raises(ValueError, match=r"f\.pcap ends within a packet"):
        copy_headers(tmp_path / "f.pcap", tmp_path / "rest.pcap", 20, Random(1))
