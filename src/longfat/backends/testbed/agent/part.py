# SPDX-License-Identifier: Apache-2.0
"""A host's part of a run, in its own PID namespace. ``serve`` starts it; both end together."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from longfat.backends.testbed.agent import datagrams, web
from longfat.backends.testbed.agent.facts import lost_packets, require_no_loss
from longfat.guest.container_init import LATE_US
from longfat.guest.echo import Echo
from longfat.guest.kinds import kind
from longfat.guest.network import Cable, Namespaces, Network, Part
from longfat.guest.run import run
from longfat.guest.sysctls import GuestError
from longfat.spec.runspec import RunSpec

ECHOES = 10
PATIENCE_NS = 3_000_000_000  # for one echo, longer than any path here


def main(folder: Path) -> None:
    """Execute ``order.json`` in the folder; the results go into ``raw`` next to it.

    When all is ready, write the read-back settings to standard output, and wait for a line on standard input. Then
    write the round trips over the cables that begin here, and wait for the start time (nanoseconds of the epoch, by
    this host's clock). After the measurement, wait for a line before cleaning up.
    """
    order = json.loads((folder / "order.json").read_text())
    os.environ.update(PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C", TERM="dumb")
    os.chdir("/")  # no program may keep the agent's folder in use
    for name in ("raw", "scratch"):
        (folder / name).mkdir()
    spec = RunSpec.from_dict(order["spec"])
    kind._MODULES |= {"udp": datagrams, "web": web}  # the ends may be on two hosts
    try:
        part = part_of(order)
        run(spec, folder / "raw", folder / "scratch", Namespaces(LATE_US), part, Lines(spec, part, order["bases"]))
    except OSError as error:  # the outcome could not be written
        _send("failed", str(error))


def part_of(order: dict[str, Any]) -> Part:
    """Return the nodes and cables in an order."""
    return Part(frozenset(order["nodes"]), {int(link): Cable(**cable) for link, cable in order["cables"].items()})


class Lines:
    """Synchronisation of the hosts by lines on standard input and output, which the agent forwards.

    ``bases`` are the cards of this host below those that the run takes.
    """

    def __init__(self, spec: RunSpec, part: Part, bases: Sequence[str]) -> None:
        self._spec = spec
        self._part = part
        self._bases = bases
        self._losses: Callable[[], dict[str, int]] = dict
        self._before: dict[str, int] = {}

    def start(self, network: Network) -> int:
        """Report settings and paths, and sleep until the start. Raises GuestError if it has passed.

        When the commanding machine requests the paths, the hosts at the other ends are ready, too.
        """
        self._losses = partial(losses, network, self._part.cables, self._bases)
        _request("ready", network.achieved({}))
        self._before = self._losses()
        wait_ns = int(_request("paths", dict(_round_trips(self._spec, network)))) - time.time_ns()
        if wait_ns < 0:
            raise GuestError(f"this host received the start {-wait_ns / 1e9:.3f} s too late")
        time.sleep(wait_ns / 1e9)
        return time.monotonic_ns()

    def leave(self) -> None:
        """Report the end of the measurement, and wait for the other hosts. Raises GuestError if a card lost packets."""
        require_no_loss(self._before, self._losses())
        _request("measured", None)


def losses(network: Network, links: Collection[int], bases: Sequence[str]) -> dict[str, int]:
    """Return the packets that each card of these links, and each card below, has lost so far, by name."""
    found = {name: lost_packets(name) for name in bases}
    for node in network.nodes:
        with network.inside(node.name):
            names = [port.name for port in network.ports[node.name] if port.link in links]
            found |= {name: lost_packets(name) for name in names}
    return found


def _round_trips(spec: RunSpec, network: Network) -> Iterator[tuple[int, int | None]]:
    """Yield the round trip over each cable whose end ``a`` is here, by the number of the link."""
    here = {node.name for node in network.nodes}
    for number, link in enumerate(spec.links):
        if link.a.node in here and link.b.node not in here:
            (port,) = (port for port in network.ports[link.a.node] if port.link == number)
            with network.inside(link.a.node):
                yield number, round_trip_us(port.peer_address)


def round_trip_us(address: str) -> int | None:
    """Return the shortest of several round trips to a neighbour in microseconds, or None without a reply."""
    with closing(Echo(address)) as echo:
        for _ in range(ECHOES):
            echo.send()
            echo.await_last(time.monotonic_ns() + PATIENCE_NS)
        return min(echo.rtt_ns.values()) // 1000 if echo.rtt_ns else None


def _request(verb: str, what: object) -> str:
    """Send a message and return the answer. Raises GuestError if the agent has ended."""
    _send(verb, what)
    answer = sys.stdin.readline()
    if not answer:
        raise GuestError("the agent has ended")
    return answer


def _send(verb: str, what: object) -> None:
    sys.stdout.write(json.dumps({verb: what}) + "\n")
    sys.stdout.flush()
