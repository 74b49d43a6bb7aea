# SPDX-License-Identifier: Apache-2.0
"""A host's part of the UDP traffic of a run: the senders and the receiving sockets that are here.

The guest's module has both ends of all traffic. A host's udp.json has the packets that its ends counted, and
``longfat.backends.testbed.connect.join`` makes the run's.
"""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from typing import Any

from longfat.guest import udp
from longfat.guest.kinds import udp as kind
from longfat.guest.processes import end_with_run
from longfat.guest.program import CODE
from longfat.spec.runspec import Udp

report = kind.report
SEND = """
import json, sys
sys.path.insert(0, sys.argv[1])
from longfat.guest import udp
print(udp.send(json.loads(sys.argv[2])))
"""  # the code is an archive here, of which no file is a program


class Traffic(kind.Traffic):
    """All UDP traffic whose sender or receiver is here."""

    def plan(self) -> None:
        """Open the receiving sockets; plan the start of the senders and the samples."""
        context = self._context
        for one in context.spec.udp:
            if context.here(one.receiver):
                with context.network.inside(one.receiver):
                    receiver = context.cleanup.enter_context(udp.open_receiver(self.ports[one.name]))
                self._receivers[one.name] = receiver
                context.timeline.at(one.start_us + one.duration_us, partial(self._note_received, one))
            if context.here(one.sender):
                context.timeline.at(one.start_us, partial(self._start_sender, one))
        if self._receivers and context.spec.probes.queue_interval_us:
            table = context.cleanup.enter_context((context.folder / "datagrams.csv").open("w"))
            table.write(f"{udp.COLUMNS}\n")
            context.timeline.repeat(context.spec.probes.queue_interval_us, partial(self._sample, table))

    def _start_sender(self, one: Udp) -> None:
        network = self._context.network
        order = {"address": network.topology.address(one.receiver), "port": self.ports[one.name]}
        order |= {"packet_bytes": self._mtu_bytes, **dataclasses.asdict(one)}
        command = [*udp.PYTHON, "-c", SEND, CODE, json.dumps(order)]
        process = network.start_tool(one.sender, command, self._context.output(f"{one.name}.udp.txt"))
        self._senders[one.name] = end_with_run(self._context.cleanup, process)

    def _report(self, one: Udp, arrived: dict[str, int]) -> dict[str, Any]:
        found = {}
        if self._context.here(one.sender):
            sent_bytes = int((self._context.folder / f"{one.name}.udp.txt").read_text())
            found["sent_packets"] = sent_bytes // self._mtu_bytes
        if self._context.here(one.receiver):
            found |= {"received_packets": self._in_time[one.name], "arrived_packets": arrived[one.name]}
        return found
