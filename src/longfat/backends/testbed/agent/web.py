# SPDX-License-Identifier: Apache-2.0
"""A host's part of the web traffic of a run: the servers and the users that are here.

The guest's module has both ends of all traffic. Servers end with the run, whose end the users do not outlast.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from longfat.guest import program, users, web
from longfat.guest.kinds import web as kind
from longfat.guest.processes import end_with_run
from longfat.spec.runspec import Web

if TYPE_CHECKING:
    from longfat.guest.run import RunContext

report = kind.report
PACKAGES = "/usr/lib/python3/dist-packages"


class Traffic(kind.Traffic):
    """All web traffic whose server or users are here."""

    def __init__(self, context: RunContext) -> None:
        super().__init__(context)
        self._with_users_here = [one for one in self._web if context.here(one.receiver)]
        self._web = tuple(one for one in self._web if context.here(one.sender))
        self._ccas = {one.name: set() for one in self._web}

    def plan(self) -> None:
        """Plan the start of the users that are here, and the reading of the sockets of the servers that are here."""
        timeline = self._context.timeline
        for one in self._with_users_here:
            timeline.at(one.start_us, partial(self._start_users, one))
        for one in self._web:
            for t_us in web.looks_us(one):
                timeline.at(t_us, partial(self._look, one))

    def _start_users(self, one: Web) -> None:
        context = self._context
        address = context.network.topology.address(one.sender)
        order = web.users_order(one, context.spec.seed, address, self.ports[one.name], context.timeline.origin_ns)
        process = context.network.start(
            one.receiver, program.command(__name__, "surf", order), context.output(f"web/{one.name}.users.json")
        )
        self._users[one.name] = end_with_run(context.cleanup, process)


def surf(order: dict[str, Any]) -> None:
    """Execute the users' program, which is a file of the archive here and cannot be called by its path."""
    sys.path.append(PACKAGES)
    users.main(order)
