# SPDX-License-Identifier: Apache-2.0
"""Netlink probes of sockets, fed with messages that a guest's kernel sent."""

from __future__ import annotations

import errno
import socket
import struct
from pathlib import Path
from typing import cast

import pytest

from longfat.guest import cca_state, netlink, sockets

DATA = Path(__file__).parents[1] / "data"
DIAG = (DATA / "linux-6.12-inet-diag-two-sockets.bin").read_bytes()
REFUSED = (DATA / "linux-6.12-netlink-refused.bin").read_bytes()


class Kernel:
    """The kernel's end of a netlink socket: keeps the requests and gives the recorded answer in pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.requests: list[bytes] = []
        self.pieces = list(pieces)

    def send(self, data: bytes) -> None:
        self.requests.append(data)

    def recv(self, _size: int) -> bytes:
        return self.pieces.pop(0)


def channel(*pieces: bytes) -> socket.socket:
    return cast(socket.socket, Kernel(*pieces))


def messages(data: bytes) -> list[bytes]:
    """The netlink messages in ``data``, headers included."""
    found = []
    while data:
        length = (struct.unpack_from("=I", data)[0] + 3) & ~3
        found.append(data[:length])
        data = data[length:]
    return found


def columns(info: sockets.Socket) -> dict[str, str]:
    """A row of sockets.csv by column."""
    return dict(zip(sockets.COLUMNS.split(","), sockets.row(200_000, "f1", 1, info).split(","), strict=True))


def test_the_sockets_of_a_sender_are_read_as_ss_showed_them() -> None:
    first, second = sockets.read_sockets(channel(DIAG))
    assert (first.source_port, second.source_port) == (56770, 56760)
    assert {first.destination_port, second.destination_port} == {5001}
    assert {first.cca, second.cca} == {"reno"}
    assert [(info.info["rtt"], info.min_rtt_us) for info in (first, second)] == [(30_001, 30_001), (30_000, 30_000)]
    assert sockets.row(200_000, "f1", 1, first).startswith("200000,f1,1,1,0,10,2147483647,6,30001,30001,0,0,1,1,,")
    assert columns(first)["delivered_segments"] == columns(second)["delivered_segments"] == "1"


def saying(name: bytes) -> bytes:
    """The answer about two sockets, the first of which has ``name`` as its upper layer protocol."""
    first, *rest = messages(DIAG)
    inner = struct.pack("=HH", 4 + len(name), sockets.INET_ULP_INFO_NAME) + name
    inner += bytes(-len(inner) % 4)
    body = first[netlink.HEADER.size :] + struct.pack("=HH", 4 + len(inner), sockets.INET_DIAG_ULP_INFO) + inner
    _length, kind, flags, sequence, port = netlink.HEADER.unpack_from(first)
    return netlink.HEADER.pack(netlink.HEADER.size + len(body), kind, flags, sequence, port) + body + b"".join(rest)


def test_parameters_and_state_of_an_algorithm_are_read_from_the_text_of_its_socket() -> None:
    speaking, silent = sockets.read_sockets(channel(saying(b"cc:gamma=30,burst=0,dwnd=123,diff=4\0")))
    assert speaking.cca_values == {"gamma": 30, "burst": 0, "dwnd": 123, "diff": 4}
    assert (speaking.cca, speaking.info["snd_cwnd"]) == ("reno", 10)
    assert silent.cca_values == {}
    assert columns(speaking)["dwnd_segments"] == "123"
    rows = list(sockets.state_rows(5, "f1", 0, speaking, {"gamma", "burst"}))
    assert rows == ["5,f1,0,dwnd,123", "5,f1,0,diff,4"]
    assert next(sockets.read_sockets(channel(saying(b"mptcp\0")))).cca_values == {}


OFFSETS = {  # struct tcp_info of include/uapi/linux/tcp.h, by hand
    "pacing_bps": (104, "=Q", 1_000, 8_000),
    "delivery_bps": (160, "=Q", 2_000, 16_000),
    "app_limited": (7, "=B", 5, 1),
    "busy_time": (168, "=Q", 31, 31),
    "rwnd_limited": (176, "=Q", 32, 32),
    "sndbuf_limited": (184, "=Q", 33, 33),
    "notsent_bytes": (144, "=I", 34, 34),
    "snd_wnd": (228, "=I", 35, 35),
    "bytes_retrans": (208, "=Q", 36, 36),
    "delivered_ce": (196, "=I", 37, 37),
    "reord_seen": (220, "=I", 38, 38),
}


@pytest.mark.parametrize("field", OFFSETS)
def test_a_field_of_tcp_info_is_read_where_the_kernel_puts_it(field: str) -> None:
    offset, form, written, read = OFFSETS[field]
    data = bytearray(248)
    struct.pack_into(form, data, offset, written)
    parts = ((sockets.INET_DIAG_INFO, bytes(data)), (sockets.INET_DIAG_CONG, b"bbr\0"))
    (info,) = sockets.parse([bytes(sockets.MESSAGE_BYTES) + b"".join(netlink.attribute(*part) for part in parts)])
    assert info.info[field] == read
    assert sum(bool(info.info[other]) for other in OFFSETS) == 1


@pytest.mark.parametrize(
    ("kind", "exported", "cca", "state"),
    [
        (
            cca_state.INET_DIAG_BBRINFO,
            struct.pack("=5I", 5, 1, 40_000, 256, 512),  # two words of bandwidth; the gains give the mode
            "bbr",
            {
                "bw_bps": 8 * (2**32 + 5),
                "min_rtt_us": 40_000,
                "pacing_gain": 1.0,
                "cwnd_gain": 2.0,
                "mode": cca_state.MODES.index("probe_bw"),
            },
        ),
        (
            cca_state.INET_DIAG_BBRINFO,
            struct.pack("=5I", 1, 0, 2, 256, 256),
            "mine",  # only the kernel's BBR has a mode from its gains
            {"bw_bps": 8, "min_rtt_us": 2, "pacing_gain": 1.0, "cwnd_gain": 1.0},
        ),
        (
            cca_state.INET_DIAG_DCTCPINFO,
            struct.pack("=HHIII", 1, 1, 256, 10, 40),
            "dctcp",
            {"enabled": 1, "ce_state": 1, "alpha": 0.25, "marked_bytes": 10, "acked_bytes": 40},
        ),
        (
            cca_state.INET_DIAG_VEGASINFO,
            struct.pack("=4I", 1, 0, 0, 0x7FFFFFFF),  # no round trip yet
            "illinois",
            {"enabled": 1, "rtt_samples": 0},
        ),
        (cca_state.INET_DIAG_BBRINFO, bytes(12), "bbr", {}),  # too short
    ],
)
def test_the_structure_of_an_algorithm_is_read_in_base_units(
    kind: int, exported: bytes, cca: str, state: dict[str, float]
) -> None:
    assert cca_state.read_state(kind, exported, cca) == state


def test_an_answer_in_several_pieces_is_one_answer_up_to_its_end() -> None:
    whole = list(netlink.dump(channel(DIAG), 20, b""))
    assert len(whole) == 2
    assert list(netlink.dump(channel(*messages(DIAG)), 20, b"")) == whole
    assert list(netlink.dump(channel(DIAG + DIAG), 20, b"")) == whole


def test_a_refused_request_is_an_error_with_the_kernels_number() -> None:
    with pytest.raises(OSError, match="netlink request refused") as caught:
        list(netlink.dump(channel(REFUSED), 9999, b""))
    assert caught.value.errno == errno.EOPNOTSUPP
