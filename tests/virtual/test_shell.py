# SPDX-License-Identifier: Apache-2.0
"""A shell in a guest: the network of the run is up, and the clock stands still between commands."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from guests import one_flow, virtual

from longfat.backends.shell.session import Prompt, converse, session
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError


def converse_with(*commands: str, spec: RunSpec | None = None) -> tuple[str, list[Prompt], int]:
    """Return the output of commands, the prompts before each, and the last status. The host waits before the second."""
    said: list[str] = []
    prompts: list[Prompt] = []
    lines = iter(commands)

    def line_for(prompt: Prompt) -> str | None:
        prompts.append(prompt)
        if len(prompts) == 2:
            time.sleep(1)
        return next(lines, None)

    spec = spec or one_flow()
    with session(virtual(), spec, spec.nodes[0].name, said.append) as one:
        status = converse(one, line_for)
    return "".join(said), prompts, status


def test_programs_see_the_network_in_virtual_time() -> None:
    said, prompts, status = converse_with(
        "ping -c 2 server",
        "true",
        "start; sleep 0.4; ss -tin dst 10.0.1.2",
        "server ss -ltn; tc qdisc show dev client1-eth0",
        "(sleep 0.1; ping -c 1 server >/dev/null) & ip netns exec delay timeout 5 tcpdump -c 1 -ni delay-eth0 icmp",
        "x=7; cd /usr",
        "echo x is $x",
        "on server",
        "ip -br addr show dev server-eth0; exit 3",
    )
    rtts = [float(text) for text in re.findall(r"icmp_seq=\d ttl=63 time=([\d.]+) ms", said)]
    assert len(rtts) == 2
    assert all(30 <= rtt < 30.1 for rtt in rtts)
    assert re.search(r"reno .*cwnd:\d+", said)
    assert "limit 100p" in said
    assert re.search(r"IP 10\.0\.0\.1 > 10\.0\.1\.2: ICMP echo request", said)
    assert "x is 7" in said
    assert "10.0.1.2/30" in said
    assert status == 3
    # Two pings are a second apart; a second of the host passes no time in the guest.
    times = [prompt.time_us for prompt in prompts]
    assert times[0] == 0
    assert times[1] == pytest.approx(1_030_000, abs=100_000)
    assert times[2] - times[1] < 1000
    assert times[3] - times[2] == pytest.approx(500_000, abs=10_000)
    assert [prompt.node for prompt in prompts[-2:]] == ["client1", "server"]
    assert prompts[-2].folder == "/usr"


def test_sysctls_of_a_node_are_read_and_written() -> None:
    said, _, status = converse_with(
        "sysctl -w net.ipv4.tcp_ecn=0",
        "sysctl net.ipv4.tcp_ecn",
        "server sysctl net.ipv4.tcp_ecn",
        "sysctl net.ipv4.no_such_name",
    )
    assert said.splitlines()[:3] == ["net.ipv4.tcp_ecn = 0", "net.ipv4.tcp_ecn = 0", "net.ipv4.tcp_ecn = 2"]
    assert "No such file" in said
    assert status == 1


def test_an_unknown_node_is_refused_at_once() -> None:
    said: list[str] = []
    early = pytest.raises(RigError, match="the guest ended before its shell was ready")
    with early, session(virtual(), one_flow(), "nowhere", said.append) as one:
        converse(one, lambda prompt: None)
    assert "KeyError: 'nowhere'" in "".join(said)


def test_a_node_with_the_name_of_a_command_hides_no_command() -> None:
    text = one_flow().to_json().replace('"client1"', '"ping"').replace('"server"', '"start"')
    commands = ("ping -c 1 start", "on start ping -c 1 ping", "start; sleep 0.3; ss -tin | grep -c reno")
    said, _, status = converse_with(*commands, spec=RunSpec.from_json(text))
    assert said.count("0% packet loss") == 2
    assert status == 0


def test_start_alone_starts_every_flow() -> None:
    spec = one_flow()
    both = replace(spec, flows=(*spec.flows, replace(spec.flows[0], name="second")))
    said, _, _ = converse_with("start; sleep 0.4; ss -tin | grep -c reno", spec=both)
    assert said.split() == ["2"]
