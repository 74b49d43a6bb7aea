# SPDX-License-Identifier: Apache-2.0
"""Host profiles: differences between the TCP stack of an era and the stack of the project's kernel.

Plain data, each setting with its reason and source. A profile never chooses a congestion control, an MTU or a queue:
these belong to the study. Offloads are off under every profile unless the study asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from longfat.catalog.kernels import DEFAULT_KERNEL, ERA_KERNEL


@dataclass(frozen=True)
class Setting:
    """A sysctl with its value and the reason for it, with its source."""

    sysctl: str
    value: str
    reason: str


@dataclass(frozen=True)
class Stack:
    """A named set of settings for senders and receivers; None is the kernel's own initial window.

    Runs have the kernel ``kernel`` if their study names none.
    """

    name: str
    summary: str
    kernel: str = DEFAULT_KERNEL
    initial_cwnd_segments: int | None = None
    settings: tuple[Setting, ...] = ()

    @property
    def sysctls(self) -> dict[str, str]:
        """Values of the settings by sysctl name."""
        return {setting.sysctl: setting.value for setting in self.settings}


_PAYLOAD = Setting(
    "net.ipv4.tcp_payload_limit",
    "65536",
    "only the first 64 KiB of each read and write are copied, because nobody reads the payload of bulk transfers; the"
    " project's own switch, kernels/",
)

RECEIVER_SETTINGS: tuple[Setting, ...] = (
    _PAYLOAD,
    Setting(
        "net.ipv4.tcp_recv_fill",
        "1",
        "a blocking read returns when its buffer is full, so that bulk reads cost no system call per packet; the"
        " project's own switch, kernels/",
    ),
)
"""Settings of every receiver under the project's kernels.

They change the cost of a run, not the packets that TCP sends.
"""

SENDER_SETTINGS: tuple[Setting, ...] = (
    _PAYLOAD,
    Setting(
        "net.ipv4.tcp_cc_info",
        "1",
        "the kernel shows parameters and state of a socket's congestion control next to tcp_info, so that a run reports"
        " what its flows used; the project's own switch, kernels/",
    ),
)
"""Settings of every sender under the project's kernels.

They change the cost of a run and the view of the sockets' probe, not the packets that TCP sends.
"""

_LINUX_2_4 = (
    Setting(
        "net.ipv4.tcp_small_queues",
        "0",
        "2.4 allowed a socket to fill the local queue; the limit came with Linux 3.6 (project's switch)",
    ),
    Setting(
        "net.ipv4.tcp_slow_start_ack_counting",
        "1",
        "2.4 increased the window by one segment per ACK, not per acknowledged segment (project's switch)",
    ),
    Setting(
        "net.ipv4.tcp_strict_cwnd_limited",
        "1",
        "2.4 increased the window only while it was full; since Linux 3.16 slow start may reach twice the data in"
        " flight (project's switch)",
    ),
    Setting(
        "net.ipv4.tcp_rate_halving",
        "1",
        "2.4 reduced the window by one segment for every second ACK, down to half of the threshold; proportional rate"
        " reduction came with Linux 3.2 (project's switch)",
    ),
    Setting(
        "net.ipv4.tcp_fixed_win_scale",
        "1",
        "2.4 offered a fixed part of the receive buffer; since Linux 6.6 the part is measured (project's switch)",
    ),
    Setting("net.ipv4.tcp_adv_win_scale", "2", "that part was three quarters in 2.4 (tcp(7))"),
    Setting(
        "net.ipv4.tcp_pingpong_thresh",
        "255",
        "today's iperf2 server sends a few bytes at the start, and 6.12 would delay the ACKs of such a connection"
        " as if it were interactive; the era's server sent nothing, and 2.4 acknowledged each segment that opened the"
        " window at once (ip-sysctl)",
    ),
    Setting("net.ipv4.tcp_recovery", "0", "no RACK loss detection before Linux 4.4 (RFC 8985)"),
    Setting("net.ipv4.tcp_early_retrans", "0", "no tail loss probe before Linux 3.10 (RFC 8985)"),
    Setting("net.ipv4.tcp_frto", "0", "F-RTO came with Linux 2.4.21 and off by default (tcp(7), RFC 5682)"),
    Setting(
        "net.ipv4.tcp_moderate_rcvbuf",
        "0",
        "the studies of the era fixed both buffers; today's auto-tuning came with Linux 2.6.7 (tcp(7))",
    ),
    Setting(
        "net.ipv4.tcp_comp_sack_nr",
        "0",
        "compressed SACKs came with Linux 4.18; 0 turns them off (ip-sysctl)",
    ),
    Setting("net.ipv4.tcp_ecn", "0", "neither end asks for ECN nor accepts it (RFC 3168, ip-sysctl)"),
    Setting(
        "net.ipv4.tcp_no_metrics_save",
        "1",
        "no connection starts with the ssthresh of an earlier one; the studies flushed the route cache for this",
    ),
)

STACKS: Mapping[str, Stack] = {
    stack.name: stack
    for stack in (
        Stack("modern", "the project's kernel with its defaults"),
        Stack(
            "linux-2.4",
            "the behaviour of Linux 2.4, as far as switches of a current kernel can express it",
            # HZ was 100 on i386 (include/asm-i386/param.h of 2.4): delayed ACKs, RTO and probes are multiples of 10 ms.
            kernel=ERA_KERNEL,
            # RFC 2581, 3.1: at most two segments.
            initial_cwnd_segments=2,
            settings=_LINUX_2_4,
        ),
    )
}


def kernel_of_stack(name: str) -> str:
    """Return the kernel of runs under a profile if their study names none; for an unknown profile, the default."""
    stack = STACKS.get(name)
    return stack.kernel if stack else DEFAULT_KERNEL
