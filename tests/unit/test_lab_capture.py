# SPDX-License-Identifier: Apache-2.0
"""tcpdump's command line and counts, and tcptrace's outstanding-data graph."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from longfat.lab import capture
from longfat.lab.capture import outstanding_data, parse_outstanding, parse_tcpdump_counts, tcpdump_command

DATA = Path(__file__).parents[1] / "data"
GRAPH = (DATA / "tcptrace-6.6.7-outstanding.xpl").read_text()
ORIGIN_US = 1_000_000_000_100_000


def test_both_directions_of_one_flow_are_captured_with_headers_only() -> None:
    assert " ".join(tcpdump_command("client1-eth0", 5002, Path("f.pcap"))) == (
        "tcpdump -i client1-eth0 -s 96 -B 16384 -n -Z root -w f.pcap tcp port 5002"
    )


def test_a_complete_capture_lost_nothing() -> None:
    text = (DATA / "tcpdump-4.99.3-complete.txt").read_text()
    assert parse_tcpdump_counts(text) == {"captured": 109, "dropped": 0}


def test_packets_that_tcpdump_never_fetched_count_as_dropped() -> None:
    text = (DATA / "tcpdump-4.99.3-ended-too-early.txt").read_text()
    assert "0 packets dropped by kernel" in text
    assert parse_tcpdump_counts(text) == {"captured": 0, "dropped": 1427}


def test_packets_dropped_by_the_kernel_are_counted() -> None:
    text = (DATA / "tcpdump-4.99.3-complete.txt").read_text().replace("0 packets dropped", "12 packets dropped")
    assert parse_tcpdump_counts(text)["dropped"] == 12


def test_a_tcpdump_that_gave_no_counts_is_an_error_with_its_words() -> None:
    with pytest.raises(ValueError, match="tcpdump gave no counts: 'tcpdump: x-eth0: No such device exists'"):
        parse_tcpdump_counts("tcpdump: x-eth0: No such device exists\n")


def test_a_graph_has_one_point_for_each_packet_of_the_sending_side() -> None:
    points = parse_outstanding(GRAPH, ORIGIN_US)
    assert len(points) == 33
    assert points[:4] == [(32_333, 1), (32_483, 61), (32_556, 9009), (32_628, 17_957)]
    assert points[-1] == (190_893, 1)
    assert max(value for _time, value in points) == 62_637


def test_points_are_in_the_order_of_time() -> None:
    times = [time for time, _value in parse_outstanding(GRAPH, ORIGIN_US)]
    assert times == sorted(times)


def test_window_and_average_of_the_graph_are_not_taken_for_outstanding_data() -> None:
    assert "yellow\ndot 1000000000.132333 53688\n" in GRAPH
    assert (32_333, 53_688) not in parse_outstanding(GRAPH, ORIGIN_US)


def test_a_colour_at_the_end_of_the_line_is_read_too() -> None:
    assert parse_outstanding("dot 12.000345 8948 red\ndot 12.000400 7 blue\n", 12_000_000) == [(345, 8948)]


def test_the_larger_graph_is_the_sending_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tcptrace(argv: list[str], *, cwd: Path, **_options: object) -> None:
        assert argv[0] == "tcptrace"
        assert Path(argv[-1]).is_absolute()
        (cwd / "a2b_owin.xpl").write_text(GRAPH)
        (cwd / "b2a_owin.xpl").write_text("red\ndot 1000000000.200000 5\n")

    monkeypatch.setattr(capture.subprocess, "run", tcptrace)
    assert outstanding_data(tmp_path / "f.pcap", tmp_path / "graphs", ORIGIN_US) == parse_outstanding(GRAPH, ORIGIN_US)


def test_a_capture_without_a_connection_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture.subprocess, "run", lambda *_args, **_options: subprocess.CompletedProcess([], 0))
    with pytest.raises(ValueError, match=r"tcptrace found no connection in f\.pcap"):
        outstanding_data(tmp_path / "f.pcap", tmp_path / "graphs", 0)
