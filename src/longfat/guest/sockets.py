# SPDX-License-Identifier: Apache-2.0
"""Probe of the sending sockets: tcp_info through inet_diag (linux/inet_diag.h, linux/tcp.h).

With net.ipv4.tcp_cc_info the project's kernel adds what the congestion control says of itself, as the text
``cc:name=value,...`` in the place of the name of an upper layer protocol (kernels/).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from longfat.guest import netlink

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
INET_DIAG_INFO = 2
INET_DIAG_CONG = 4
INET_DIAG_ULP_INFO = 19
INET_ULP_INFO_NAME = 1
TCP_ESTABLISHED, TCP_CLOSE, TCP_LISTEN = 1, 7, 10  # net/tcp_states.h
NO_RTT = 0xFFFFFFFF  # min_rtt of a connection that has measured none (tcp_min_rtt)
ALL_BUT_LISTEN = 0xFFF & ~(1 << 10) & ~(1 << 6)  # neither LISTEN nor TIME_WAIT

REQUEST = struct.Struct("=BBBBI48s")  # family, protocol, extensions, pad, states, socket id
SOCKET_ID = struct.Struct("!HH")  # source and destination port lead the id
MESSAGE_BYTES = 72  # struct inet_diag_msg
ID_OFFSET = 4
INODE = struct.Struct("=I")  # of the socket's file, at the end of the message: given out in the order of creation
INODE_OFFSET = MESSAGE_BYTES - INODE.size

COLUMNS = (
    "t_us,flow,stream,state,ca_state,cwnd_segments,ssthresh_segments,inflight_segments,srtt_us,min_rtt_us,"
    "retrans_total,lost_segments,bytes_acked,delivered_segments,dwnd_segments"
)
CCA_TEXT = "cc:"


@dataclass(frozen=True)
class TcpInfo:
    """The fields of tcp_info that are recorded. Counts in segments, times in microseconds.

    ``cca_values`` is what the CCA says of itself: its parameters in the units of their sysctls and numbers of
    its state, empty where it says nothing. The last acknowledgment came ``last_ack_ms`` ago, in whole ticks.
    ``inode`` grows from socket to socket; it is 0 where no program has it open.
    """

    inode: int
    source_port: int
    destination_port: int
    cca: str
    state: int
    ca_state: int
    cwnd: int
    ssthresh: int
    inflight: int
    srtt: int
    min_rtt: int
    retrans_total: int
    lost: int
    bytes_acked: int
    bytes_received: int
    delivered: int
    last_ack_ms: int
    cca_values: dict[str, int]

    @property
    def has_rtt(self) -> bool:
        """Whether the connection has measured a round trip."""
        return 0 < self.min_rtt < NO_RTT


def open_probe() -> socket.socket:
    """An inet_diag channel in the current network namespace."""
    return netlink.open_socket(NETLINK_SOCK_DIAG)


def request() -> bytes:
    """The body of the request for every connected IPv4 TCP socket of a namespace."""
    extensions = (1 << (INET_DIAG_INFO - 1)) | (1 << (INET_DIAG_CONG - 1))
    return REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, extensions, 0, ALL_BUT_LISTEN, b"")


def read_sockets(channel: socket.socket) -> Iterator[TcpInfo]:
    """The state of every connected IPv4 TCP socket of the channel's namespace."""
    return parse(netlink.dump(channel, SOCK_DIAG_BY_FAMILY, request()))


def parse(messages: Iterable[bytes]) -> Iterator[TcpInfo]:
    """The sockets that the messages of a dump tell of."""
    for message in messages:
        source_port, destination_port = SOCKET_ID.unpack_from(message, ID_OFFSET)
        (inode,) = INODE.unpack_from(message, INODE_OFFSET)
        info, cca, values = b"", "", {}
        for kind, payload in netlink.attributes(message, MESSAGE_BYTES):
            if kind == INET_DIAG_INFO:
                info = payload
            elif kind == INET_DIAG_CONG:
                cca = _text(payload)
            elif kind == INET_DIAG_ULP_INFO:
                values = _cca_values(payload)
        if info:
            yield _tcp_info(inode, source_port, destination_port, cca, values, info)


def _text(payload: bytes) -> str:
    return payload.split(b"\0")[0].decode()


def _cca_values(ulp_info: bytes) -> dict[str, int]:
    """What the CCA says of itself, by name; empty when the text is that of a real upper layer protocol."""
    for kind, payload in netlink.attributes(ulp_info, 0):
        text = _text(payload) if kind == INET_ULP_INFO_NAME else ""
        if text.startswith(CCA_TEXT):
            pairs = (part.split("=") for part in text.removeprefix(CCA_TEXT).split(","))
            return {name: int(value) for name, value in pairs}
    return {}


def _tcp_info(
    inode: int, source_port: int, destination_port: int, cca: str, values: dict[str, int], info: bytes
) -> TcpInfo:
    """Unpack struct tcp_info: 8 bytes, 24 words of 32 bits, then the counters of later kernels."""
    state, ca_state = info[0], info[1]
    words = struct.unpack_from("=24I", info, 8)
    unacked, sacked, lost, retrans = words[4:8]
    bytes_acked, bytes_received = struct.unpack_from("=2Q", info, 120)
    (min_rtt,) = struct.unpack_from("=I", info, 148)
    (delivered,) = struct.unpack_from("=I", info, 192)
    return TcpInfo(
        inode=inode,
        source_port=source_port,
        destination_port=destination_port,
        cca=cca,
        state=state,
        ca_state=ca_state,
        cwnd=words[18],
        ssthresh=words[17],
        inflight=unacked - sacked - lost + retrans,
        srtt=words[15],
        min_rtt=min_rtt,
        retrans_total=words[23],
        lost=lost,
        bytes_acked=bytes_acked,
        bytes_received=bytes_received,
        delivered=delivered,
        last_ack_ms=words[12],
        cca_values=values,
    )


def row(t_us: int, flow: str, stream: int, info: TcpInfo) -> str:
    """One line of sockets.csv."""
    dwnd = info.cca_values.get("dwnd", "")
    return (
        f"{t_us},{flow},{stream},{info.state},{info.ca_state},{info.cwnd},{info.ssthresh},{info.inflight},"
        f"{info.srtt},{info.min_rtt},{info.retrans_total},{info.lost},{info.bytes_acked},{info.delivered},{dwnd}"
    )
