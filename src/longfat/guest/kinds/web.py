# SPDX-License-Identifier: Apache-2.0
"""The web traffic of a run: servers, users, and observations of their sockets.

The routes of a server's node set the congestion control of its sockets (``guest/network.py``); here it is read back.
"""

from __future__ import annotations

import json
import socket
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longfat.guest import sockets, web
from longfat.guest.files import report_of, write_json
from longfat.guest.processes import end_with_run, finish
from longfat.spec.runspec import RunSpec, Web

if TYPE_CHECKING:
    from longfat.guest.run import RunContext


class Traffic:
    """The web traffic of a run: its programs, and the congestion controls of its servers' sockets."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._web = context.spec.web
        self.ports = {users.name: web.FIRST_PORT + k for k, users in enumerate(self._web)}
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._users: dict[str, subprocess.Popen[bytes]] = {}
        self._ccas: dict[str, set[str]] = {users.name: set() for users in self._web}

    def prepare(self) -> None:
        """Create the files and start every server."""
        (self._context.folder / "web").mkdir()
        files = self._context.scratch / "web"
        web.make_files(files)
        for users in self._web:
            config = self._context.scratch / f"{users.name}.nginx"
            config.write_text(web.server_config(users, self.ports[users.name], files, self._context.scratch))
            output = self._context.output(f"web/{users.name}.server.txt")
            process = self._context.network.start(users.sender, web.server_command(config), output)
            self._servers[users.name] = end_with_run(self._context.cleanup, process)

    def plan(self) -> None:
        """Plan the start of the users, and the reading of the servers' sockets."""
        for users in self._web:
            self._context.timeline.at(users.start_us, partial(self._start_users, users))
            for t_us in web.looks_us(users):
                self._context.timeline.at(t_us, partial(self._look, users))

    def finish(self) -> None:
        """Wait for the users, end the servers."""
        for name, process in self._users.items():
            finish(process, f"program of the users of {name}", within_s=self._context.drain_s)
        for name, process in self._servers.items():
            process.terminate()
            finish(process, f"web server of {name}", within_s=self._context.drain_s)

    def achieved(self) -> dict[str, Any]:
        """Return the congestion controls seen for each entry."""
        return {"web": [{"web": name, "ccas": sorted(ccas)} for name, ccas in self._ccas.items()]}

    def _start_users(self, users: Web) -> None:
        """Start the users of one entry."""
        order = self._context.scratch / f"{users.name}.order"
        address = self._context.network.topology.address(users.sender)
        origin_ns = self._context.timeline.origin_ns
        users_order = web.users_order(users, self._context.spec.seed, address, self.ports[users.name], origin_ns)
        order.write_text(json.dumps(users_order))
        output = self._context.output(f"web/{users.name}.users.json")
        process = self._context.network.start(users.receiver, web.users_command(order), output)
        self._users[users.name] = end_with_run(self._context.cleanup, process)

    def _look(self, users: Web) -> None:
        """Read the congestion controls of the server's connections."""
        with self._context.network.inside(users.sender):
            channel: socket.socket = sockets.open_probe()
        with channel:
            port = self.ports[users.name]
            self._ccas[users.name] |= {info.cca for info in sockets.read_sockets(channel) if info.source_port == port}


def report(spec: RunSpec, folder: Path) -> None:
    """Write web.json."""
    write_json(folder / "web.json", web_results(spec, folder))


def web_results(spec: RunSpec, folder: Path) -> list[dict[str, Any]]:
    """Return web.json from the output of the users. Raises KeyError or ValueError if it is incomplete."""
    results = []
    for users in spec.web:
        found = json.loads((folder / "web" / f"{users.name}.users.json").read_text())
        counts = {key: found[key] for key in ("bytes_received", "replies", "unfinished", "mean_reply_us", "errors")}
        results.append(report_of("web", users) | {"model": users.model, "users": users.users, **counts})
    return results
