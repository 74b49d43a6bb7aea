# SPDX-License-Identifier: Apache-2.0
"""Probe of the sending sockets: tcp_info through inet_diag (linux/inet_diag.h, linux/tcp.h).

A congestion control may add a structure of its own (longfat.guest.cca_state). With net.ipv4.tcp_cc_info the project's
kernel adds parameters and state as the text ``cc:name=value,...`` instead of the name of an upper layer protocol.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from longfat.guest import cca_state, netlink

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
INET_DIAG_INFO = 2
INET_DIAG_CONG = 4
INET_DIAG_ULP_INFO = 19
INET_ULP_INFO_NAME = 1
TCP_ESTABLISHED, TCP_CLOSE, TCP_LISTEN = 1, 7, 10  # net/tcp_states.h
NO_PACING = 0xFFFFFFFFFFFFFFFF  # pacing rate of a connection that has none (tcp_get_info)
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
    "retrans_total,lost_segments,bytes_acked,delivered_segments,dwnd_segments,"
    "pacing_bps,delivery_bps,app_limited,busy_us,rwnd_limited_us,sndbuf_limited_us,notsent_bytes,snd_wnd_bytes,"
    "retrans_bytes,delivered_ce_segments,reordering_total"
)
STATE_COLUMNS = "t_us,flow,stream,name,value"
CCA_TEXT = "cc:"
# struct tcp_info (linux/tcp.h): 8 bytes, of which the first two and the last are taken, 24 words, pacing rate
# and its limit, bytes acknowledged and received, six numbers up to data segments out; delivery rate, three times,
# delivered segments and marked ones, bytes sent; bytes sent again, and four numbers up to the window that is offered.
INFO = struct.Struct("=BB5xB24I4Q6I4Q2IQQ4I")


class TcpInfo(NamedTuple):
    """The fields of tcp_info that are recorded. Counts in segments, times in microseconds.

    Rates are in bit/s; ``pacing_bps`` is None without pacing. ``app_limited`` is 1 where the last sample of the
    delivery rate was limited by the application. ``busy_us`` is the time with data to send or to be acknowledged; the
    two ``limited`` times are parts of it. ``cca_values`` has the text that the CCA exports: parameters in the units of
    their sysctls, and state; ``cca_state`` has its structure. The last acknowledgment came ``last_ack_ms`` ago, in
    whole ticks. ``inode`` grows from socket to socket; it is 0 where no program has it open.
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
    pacing_bps: int | None
    delivery_bps: int
    app_limited: int
    busy_us: int
    rwnd_limited_us: int
    sndbuf_limited_us: int
    notsent_bytes: int
    snd_wnd_bytes: int
    retrans_bytes: int
    delivered_ce: int
    reordering: int
    cca_values: dict[str, int]
    cca_state: cca_state.State

    @property
    def has_rtt(self) -> bool:
        """Whether the connection has measured a round trip."""
        return 0 < self.min_rtt < NO_RTT


def open_probe() -> socket.socket:
    """An inet_diag channel in the current network namespace."""
    return netlink.open_socket(NETLINK_SOCK_DIAG)


def request() -> bytes:
    """The body of the request for every connected IPv4 TCP socket of a namespace."""
    # Every algorithm that has a structure gives it for VEGASINFO; the bits of the others do not exist in 8 bits.
    wanted = (INET_DIAG_INFO, INET_DIAG_CONG, cca_state.INET_DIAG_VEGASINFO)
    extensions = sum(1 << (kind - 1) for kind in wanted)
    return REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, extensions, 0, ALL_BUT_LISTEN, b"")


def read_sockets(channel: socket.socket) -> Iterator[TcpInfo]:
    """The state of every connected IPv4 TCP socket of the channel's namespace."""
    return parse(netlink.dump(channel, SOCK_DIAG_BY_FAMILY, request()))


def parse(messages: Iterable[bytes]) -> Iterator[TcpInfo]:
    """The sockets that the messages of a dump tell of."""
    for message in messages:
        source_port, destination_port = SOCKET_ID.unpack_from(message, ID_OFFSET)
        (inode,) = INODE.unpack_from(message, INODE_OFFSET)
        info, cca, values, own = b"", "", {}, []
        for kind, payload in netlink.attributes(message, MESSAGE_BYTES):
            if kind == INET_DIAG_INFO:
                info = payload
            elif kind == INET_DIAG_CONG:
                cca = _text(payload)
            elif kind == INET_DIAG_ULP_INFO:
                values = _cca_values(payload)
            else:
                own.append((kind, payload))
        if info:
            state = {name: value for one in own for name, value in cca_state.read_state(*one, cca).items()}
            yield _tcp_info(inode, source_port, destination_port, cca, values, state, info)


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
    inode: int,
    source_port: int,
    destination_port: int,
    cca: str,
    values: dict[str, int],
    state: cca_state.State,
    info: bytes,
) -> TcpInfo:
    """Unpack struct tcp_info."""
    words = INFO.unpack_from(info)
    state_number, ca_state, rates = words[:3]
    unacked, sacked, lost, retrans = words[7:11]
    pacing, _most, bytes_acked, bytes_received, _out, _in, notsent, min_rtt, _data_in, _data_out = words[27:37]
    delivery, busy, rwnd_limited, sndbuf_limited, delivered, delivered_ce, _sent = words[37:44]
    retrans_bytes, _dsacks, reordering, _out_of_order, snd_wnd = words[44:]
    return TcpInfo(
        inode=inode,
        source_port=source_port,
        destination_port=destination_port,
        cca=cca,
        state=state_number,
        ca_state=ca_state,
        cwnd=words[21],
        ssthresh=words[20],
        inflight=unacked - sacked - lost + retrans,
        srtt=words[18],
        min_rtt=min_rtt,
        retrans_total=words[26],
        lost=lost,
        bytes_acked=bytes_acked,
        bytes_received=bytes_received,
        delivered=delivered,
        last_ack_ms=words[15],
        pacing_bps=None if pacing == NO_PACING else 8 * pacing,
        delivery_bps=8 * delivery,
        app_limited=rates & 1,
        busy_us=busy,
        rwnd_limited_us=rwnd_limited,
        sndbuf_limited_us=sndbuf_limited,
        notsent_bytes=notsent,
        snd_wnd_bytes=snd_wnd,
        retrans_bytes=retrans_bytes,
        delivered_ce=delivered_ce,
        reordering=reordering,
        cca_values=values,
        cca_state=state,
    )


def row(t_us: int, flow: str, stream: int, info: TcpInfo) -> str:
    """One line of sockets.csv."""
    dwnd = info.cca_values.get("dwnd", "")
    return (
        f"{t_us},{flow},{stream},{info.state},{info.ca_state},{info.cwnd},{info.ssthresh},{info.inflight},"
        f"{info.srtt},{info.min_rtt},{info.retrans_total},{info.lost},{info.bytes_acked},{info.delivered},{dwnd},"
        f"{'' if info.pacing_bps is None else info.pacing_bps},{info.delivery_bps},{info.app_limited},{info.busy_us},"
        f"{info.rwnd_limited_us},{info.sndbuf_limited_us},{info.notsent_bytes},{info.snd_wnd_bytes},"
        f"{info.retrans_bytes},{info.delivered_ce},{info.reordering}"
    )


def state_rows(t_us: int, flow: str, stream: int, info: TcpInfo, parameters: Collection[str]) -> Iterator[str]:
    """Lines of cca_state.csv: the state that the congestion control exports, without its parameters."""
    text = {name: value for name, value in info.cca_values.items() if name not in parameters}
    for name, value in {**info.cca_state, **text}.items():
        yield f"{t_us},{flow},{stream},{name},{value}"
