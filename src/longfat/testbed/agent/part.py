# SPDX-License-Identifier: Apache-2.0
"""A host's part of a run, in separate processes and a PID namespace: started by ``serve``, and ended with it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longfat.guest.enclosed import LATE_US
from longfat.guest.network import Cable, Namespaces, Network, Part
from longfat.guest.run import run
from longfat.guest.sysctls import LaboratoryError
from longfat.runspec import RunSpec
from longfat.testbed.agent.echoes import round_trip_us


def main(folder: Path) -> None:
    """Follow ``order.json`` in the folder; the results go into ``raw`` next to it.

    Once all is ready, writes the settings that were read back to standard output, and waits on standard input for a
    line. Then it writes the round trips over the cables that begin here, and waits for the time of the start
    (nanoseconds of the epoch, by this host's clock). Once it has measured, waits for a line that lets it leave.
    """
    order = json.loads((folder / "order.json").read_text())
    os.environ.update(PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C", TERM="dumb")
    os.chdir("/")  # no program holds the folder that the agent was started in
    for name in ("raw", "scratch"):
        (folder / name).mkdir()
    spec = RunSpec.from_dict(order["spec"])
    try:
        run(spec, folder / "raw", folder / "scratch", Namespaces(LATE_US), part_of(order), Lines(spec))
    except OSError as error:  # not even the outcome could be written
        _say("failed", str(error))


def part_of(order: dict[str, Any]) -> Part:
    """The nodes and cables that an order names."""
    return Part(frozenset(order["nodes"]), {int(link): Cable(**cable) for link, cable in order["cables"].items()})


class Lines:
    """The meeting by lines on standard input and output: the agent passes them on."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec

    def start(self, network: Network) -> int:
        """Report what was read back and the paths, and sleep until the start. Raises LaboratoryError when it is over.

        When asked for the paths, the hosts at their other ends are ready too.
        """
        _asked("ready", network.achieved({}))
        wait_ns = int(_asked("paths", dict(_round_trips(self._spec, network)))) - time.time_ns()
        if wait_ns < 0:
            raise LaboratoryError(f"the start was {-wait_ns / 1e9:.3f} s ago when this host was told of it")
        time.sleep(wait_ns / 1e9)
        return time.monotonic_ns()

    def leave(self) -> None:
        """Report that the measurement is over, and wait for the others."""
        _asked("measured", None)


def _round_trips(spec: RunSpec, network: Network) -> Iterator[tuple[int, int | None]]:
    """The round trip over each cable that has its end ``a`` here, by the link's number."""
    here = {node.name for node in network.nodes}
    for number, link in enumerate(spec.links):
        if link.a.node in here and link.b.node not in here:
            (port,) = (port for port in network.ports[link.a.node] if port.link == number)
            with network.inside(link.a.node):
                yield number, round_trip_us(port.peer_address)


def _asked(verb: str, what: object) -> str:
    """Send a message, and wait for the line that answers it. Raises LaboratoryError when nobody is there any more."""
    _say(verb, what)
    answer = sys.stdin.readline()
    if not answer:
        raise LaboratoryError("the agent has gone")
    return answer


def _say(verb: str, what: object) -> None:
    sys.stdout.write(json.dumps({verb: what}) + "\n")
    sys.stdout.flush()
