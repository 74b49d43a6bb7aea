# SPDX-License-Identifier: Apache-2.0
"""Probe of TCP sockets through inet_diag (linux/inet_diag.h): tcp_info, CCA parameters and state, buffers.

A CCA may export its own structure (longfat.guest.cca_state). With net.ipv4.tcp_cc_info the project's kernel adds
parameters and state as the text ``cc:name=value,...`` instead of the name of an upper layer protocol.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from longfat.guest import cca_state, netlink

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
INET_DIAG_INFO = 2
INET_DIAG_CONG = 4
INET_DIAG_SKMEMINFO = 7
INET_DIAG_ULP_INFO = 19
INET_ULP_INFO_NAME = 1
TCP_ESTABLISHED, TCP_CLOSE, TCP_LISTEN = 1, 7, 10  # net/tcp_states.h
NO_PACING = 0xFFFFFFFFFFFFFFFF  # pacing rate of a connection without pacing (tcp_get_info)
NO_RTT = 0xFFFFFFFF  # min_rtt of a connection without a sample (tcp_min_rtt)
ALL_BUT_TIME_WAIT = 0xFFF & ~(1 << 6)
ALL_BUT_LISTEN = ALL_BUT_TIME_WAIT & ~(1 << TCP_LISTEN)

REQUEST = struct.Struct("=BBBBI48s")  # family, protocol, extensions, pad, states, socket id
SOCKET_ID = struct.Struct("!HH")  # source and destination port, at the start of the id
MESSAGE_BYTES = 72  # struct inet_diag_msg
ID_OFFSET = 4
INODE = struct.Struct("=I")  # inode of the socket's file, at the end of the message: increases with creation
INODE_OFFSET = MESSAGE_BYTES - INODE.size
SKMEMINFO = struct.Struct("=4I")  # enum sk_meminfo_vars in linux/sock_diag.h: memory, buffer, memory, buffer
CCA_TEXT = "cc:"

INFO = struct.Struct("=BB5xB24I4Q6I4Q2I2Q4I")
INFO_FIELDS = (
    *("state", "ca_state", "app_limited", "rto", "ato", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans"),
    *("fackets", "last_data_sent", "last_ack_sent", "last_data_recv", "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt"),
    *("rttvar", "snd_ssthresh", "snd_cwnd", "advmss", "reordering", "rcv_rtt", "rcv_space", "total_retrans"),
    *("pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received", "segs_out", "segs_in", "notsent_bytes"),
    *("min_rtt", "data_segs_in", "data_segs_out", "delivery_rate", "busy_time", "rwnd_limited", "sndbuf_limited"),
    *("delivered", "delivered_ce", "bytes_sent", "bytes_retrans", "dsack_dups", "reord_seen", "rcv_ooopack", "snd_wnd"),
)
"""struct tcp_info (linux/tcp.h): its first two bytes and the last of eight, words, then rates, counts and times."""
RECORDED = {
    "state": "state",
    "ca_state": "ca_state",
    "cwnd_segments": "snd_cwnd",
    "ssthresh_segments": "snd_ssthresh",
    "inflight_segments": "inflight",
    "srtt_us": "rtt",
    "min_rtt_us": "min_rtt",
    "retrans_total": "total_retrans",
    "lost_segments": "lost",
    "bytes_acked": "bytes_acked",
    "delivered_segments": "delivered",
    "dwnd_segments": "dwnd",
    "pacing_bps": "pacing_bps",
    "delivery_bps": "delivery_bps",
    "app_limited": "app_limited",
    "busy_us": "busy_time",
    "rwnd_limited_us": "rwnd_limited",
    "sndbuf_limited_us": "sndbuf_limited",
    "notsent_bytes": "notsent_bytes",
    "snd_wnd_bytes": "snd_wnd",
    "retrans_bytes": "bytes_retrans",
    "delivered_ce_segments": "delivered_ce",
    "reordering_total": "reord_seen",
}
"""Columns of sockets.csv, each with its key in ``Socket.info``."""
COLUMNS = ",".join(("t_us", "flow", "stream", *RECORDED))
STATE_COLUMNS = "t_us,flow,stream,name,value"


@dataclass(frozen=True)
class Socket:
    """A TCP socket. ``inode`` increases from socket to socket; it is 0 if no program has the socket open.

    ``info`` has tcp_info by its kernel names, and ``inflight``, ``pacing_bps`` (None without pacing), ``delivery_bps``
    and ``dwnd``. ``cca_values`` has the exported text of the CCA, ``cca_state`` its structure.
    """

    inode: int
    source_port: int
    destination_port: int
    cca: str
    cca_values: dict[str, int]
    cca_state: cca_state.State
    info: dict[str, int | None]

    @property
    def min_rtt_us(self) -> int | None:
        """Smallest round-trip time so far; None before the first sample."""
        found = self.info["min_rtt"]
        return found if found and found < NO_RTT else None


@dataclass(frozen=True)
class Buffers:
    """Ports and buffers in bytes of a TCP socket; the destination port of a listening socket is 0."""

    source_port: int
    destination_port: int
    receive: int
    send: int


def open_probe() -> socket.socket:
    """Open an inet_diag channel in the current network namespace."""
    return netlink.open_socket(NETLINK_SOCK_DIAG)


def request() -> bytes:
    """Return the body of the request for every connected IPv4 TCP socket of a namespace."""
    # VEGASINFO makes every CCA add its structure: the bits of the others do not exist in 8 bits.
    wanted = (INET_DIAG_INFO, INET_DIAG_CONG, cca_state.INET_DIAG_VEGASINFO)
    extensions = sum(1 << (kind - 1) for kind in wanted)
    return REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, extensions, 0, ALL_BUT_LISTEN, b"")


def read_sockets(channel: socket.socket) -> Iterator[Socket]:
    """Yield every connected IPv4 TCP socket of the channel's namespace."""
    return parse(netlink.dump(channel, SOCK_DIAG_BY_FAMILY, request()))


def parse(messages: Iterable[bytes]) -> Iterator[Socket]:
    """Yield the sockets in the messages of a dump."""
    for message in messages:
        source, destination = SOCKET_ID.unpack_from(message, ID_OFFSET)
        (inode,) = INODE.unpack_from(message, INODE_OFFSET)
        info, cca, values, structures = b"", "", {}, []
        for kind, payload in netlink.attributes(message, MESSAGE_BYTES):
            if kind == INET_DIAG_INFO:
                info = payload
            elif kind == INET_DIAG_CONG:
                cca = _text(payload)
            elif kind == INET_DIAG_ULP_INFO:
                values = _cca_values(payload)
            else:
                structures.append((kind, payload))
        if info:
            state = {name: value for one in structures for name, value in cca_state.read_state(*one, cca).items()}
            yield Socket(inode, source, destination, cca, values, state, _tcp_info(info, values))


def _text(payload: bytes) -> str:
    return payload.split(b"\0")[0].decode()


def _cca_values(ulp_info: bytes) -> dict[str, int]:
    """Return the CCA's exported parameters and state by name; empty if a real ULP supplied the text."""
    for kind, payload in netlink.attributes(ulp_info, 0):
        text = _text(payload) if kind == INET_ULP_INFO_NAME else ""
        if text.startswith(CCA_TEXT):
            pairs = (part.split("=") for part in text.removeprefix(CCA_TEXT).split(","))
            return {name: int(value) for name, value in pairs}
    return {}


def _tcp_info(packed: bytes, values: dict[str, int]) -> dict[str, int | None]:
    """Unpack struct tcp_info; see ``Socket.info``."""
    words = dict(zip(INFO_FIELDS, INFO.unpack_from(packed), strict=True))
    pacing = words["pacing_rate"]
    return {
        **words,
        "app_limited": words["app_limited"] & 1,
        "inflight": words["unacked"] - words["sacked"] - words["lost"] + words["retrans"],
        "pacing_bps": None if pacing == NO_PACING else 8 * pacing,
        "delivery_bps": 8 * words["delivery_rate"],
        "dwnd": values.get("dwnd"),
    }


def row(t_us: int, flow: str, stream: int, one: Socket) -> str:
    """Return a line of sockets.csv."""
    values = (one.info[key] for key in RECORDED.values())
    return f"{t_us},{flow},{stream}," + ",".join("" if value is None else str(value) for value in values)


def state_rows(t_us: int, flow: str, stream: int, one: Socket, parameters: Collection[str]) -> Iterator[str]:
    """Yield the lines of cca_state.csv: the exported state of the CCA, without its parameters."""
    text = {name: value for name, value in one.cca_values.items() if name not in parameters}
    for name, value in {**one.cca_state, **text}.items():
        yield f"{t_us},{flow},{stream},{name},{value}"


def buffers_request() -> bytes:
    """Return the body of the request for the buffers of every IPv4 TCP socket of a namespace."""
    extensions = 1 << (INET_DIAG_SKMEMINFO - 1)
    return REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, extensions, 0, ALL_BUT_TIME_WAIT, b"")


def parse_buffers(messages: Iterable[bytes]) -> Iterator[Buffers]:
    """Yield the buffers in the messages of a dump; a connection without a socket has none."""
    for message in messages:
        source, destination = SOCKET_ID.unpack_from(message, ID_OFFSET)
        memory = dict(netlink.attributes(message, MESSAGE_BYTES)).get(INET_DIAG_SKMEMINFO)
        if memory:
            _, receive, _, send = SKMEMINFO.unpack_from(memory)
            yield Buffers(source, destination, receive, send)


def read_buffers() -> list[Buffers]:
    """Return the buffers of every IPv4 TCP socket of the current network namespace."""
    with open_probe() as channel:
        return list(parse_buffers(netlink.dump(channel, SOCK_DIAG_BY_FAMILY, buffers_request())))
