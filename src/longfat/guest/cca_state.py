# SPDX-License-Identifier: Apache-2.0
"""State of a socket's congestion control from its inet_diag structure, by name and in base units.

Fields without a value yet are left out. ``longfat.guest.sockets`` reads the text of the project's algorithms.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

State = Mapping[str, float]

# include/uapi/linux/inet_diag.h
INET_DIAG_VEGASINFO = 3
INET_DIAG_DCTCPINFO = 9
INET_DIAG_BBRINFO = 16

VEGAS = struct.Struct("=4I")  # struct tcpvegas_info: enabled, number of samples, RTT and smallest RTT in us
DCTCP = struct.Struct("=HHIII")  # struct tcp_dctcp_info: enabled, CE state, alpha, marked bytes, all bytes
BBR = struct.Struct("=5I")  # struct tcp_bbr_info: bandwidth in bytes/s (low and high word), min RTT in us, two gains

NO_RTT = 0x7FFFFFFF  # base RTT of Vegas and similar CCAs before the first sample (tcp_vegas.c)
ALPHA_UNIT = 1024  # DCTCP_MAX_ALPHA (tcp_dctcp.h)
GAIN_UNIT = 256  # BBR_UNIT (tcp_bbr.c)
MODES = ("startup", "drain", "probe_bw", "probe_rtt")  # enum bbr_mode (tcp_bbr.c)


def read_state(kind: int, payload: bytes, cca: str) -> State:
    """Return the fields of an attribute of ``cca``; empty for an unknown attribute or length."""
    structure, read = _READERS.get(kind, (None, None))
    if structure is None or read is None or len(payload) < structure.size:
        return {}
    return read(structure.unpack_from(payload), cca)


def bbr_mode(pacing_gain: int, cwnd_gain: int) -> int:
    """Return the index in ``MODES`` of the gains, both in 1/256 (bbr_update_gains in tcp_bbr.c).

    cwnd_gain is 2.89 in startup and drain, which differ in pacing_gain, 2 in probe_bw and 1 in probe_rtt. Before the
    first acknowledgment both are 0.
    """
    if cwnd_gain == GAIN_UNIT:
        return MODES.index("probe_rtt")
    if 0 < cwnd_gain <= 2 * GAIN_UNIT:
        return MODES.index("probe_bw")
    return MODES.index("drain" if cwnd_gain and pacing_gain < GAIN_UNIT else "startup")


def _vegas(fields: tuple[int, ...], cca: str) -> State:
    enabled, samples, rtt_us, min_rtt_us = fields
    # Vegas and Yeah export the base RTT, and the smallest RTT of the current round (tcp_vegas_get_info).
    name = "base_rtt_us" if cca in ("vegas", "yeah") else "rtt_us"
    times = {name: rtt_us, "min_rtt_us": min_rtt_us}
    measured = {name: value for name, value in times.items() if 0 < value < NO_RTT}
    return {"enabled": enabled, "rtt_samples": samples, **measured}


def _dctcp(fields: tuple[int, ...], _cca: str) -> State:
    enabled, ce_state, alpha, marked_bytes, acked_bytes = fields
    if not enabled:
        return {"enabled": 0}
    return {
        "enabled": 1,
        "ce_state": ce_state,
        "alpha": alpha / ALPHA_UNIT,
        "marked_bytes": marked_bytes,
        "acked_bytes": acked_bytes,
    }


def _bbr(fields: tuple[int, ...], cca: str) -> State:
    low, high, min_rtt_us, pacing_gain, cwnd_gain = fields
    found: dict[str, float] = {"bw_bps": 8 * (high << 32 | low), "min_rtt_us": min_rtt_us}
    found |= {"pacing_gain": pacing_gain / GAIN_UNIT, "cwnd_gain": cwnd_gain / GAIN_UNIT}
    # Only in the kernel's BBR do the gains show the mode: other CCAs may export the same structure.
    return found | ({"mode": bbr_mode(pacing_gain, cwnd_gain)} if cca == "bbr" else {})


_READERS: dict[int, tuple[struct.Struct, Callable[[tuple[int, ...], str], State]]] = {
    INET_DIAG_VEGASINFO: (VEGAS, _vegas),
    INET_DIAG_DCTCPINFO: (DCTCP, _dctcp),
    INET_DIAG_BBRINFO: (BBR, _bbr),
}
