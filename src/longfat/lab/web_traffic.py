# SPDX-License-Identifier: Apache-2.0
"""The web traffic of one run while it happens: servers, users, and what their sockets showed.

The routes of a server's node give its sockets their congestion control (``longfat.lab.network``); here it is read back.
"""

from __future__ import annotations

import json
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from longfat.lab import sockets, web
from longfat.lab.namespaces import inside
from longfat.lab.network import Network
from longfat.lab.processes import finish, started
from longfat.runspec import RunSpec, Web


class WebTraffic:
    """The web traffic of one run: its programs, and the congestion controls that its servers' sockets showed."""

    def __init__(self, spec: RunSpec, folder: Path, scratch: Path) -> None:
        self._spec = spec
        self._folder = folder / "web"
        self._scratch = scratch
        self._ports = {users.name: web.FIRST_PORT + k for k, users in enumerate(spec.web)}
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._users: dict[str, subprocess.Popen[bytes]] = {}
        self._ccas: dict[str, set[str]] = {users.name: set() for users in spec.web}

    def start_servers(self, network: Network, cleanup: ExitStack) -> None:
        """Make the files and start every server."""
        if not self._spec.web:
            return
        self._folder.mkdir()
        files = self._scratch / "web"
        web.make_files(files)
        for users in self._spec.web:
            config = self._scratch / f"{users.name}.nginx"
            config.write_text(web.server_config(users, self._ports[users.name], files, self._scratch))
            output = cleanup.enter_context((self._folder / f"{users.name}.server.txt").open("wb"))
            process = network.start(users.sender, web.server_command(config), output)
            self._servers[users.name] = started(cleanup, process)

    def start_users(self, network: Network, cleanup: ExitStack, users: Web, origin_ns: int) -> None:
        """Start the users of one entry."""
        order = self._scratch / f"{users.name}.order"
        address = network.topology.address(users.sender)
        told = web.users_order(users, self._spec.seed, address, self._ports[users.name], origin_ns)
        order.write_text(json.dumps(told))
        output = cleanup.enter_context((self._folder / f"{users.name}.users.json").open("wb"))
        process = network.start(users.receiver, web.users_command(order), output)
        self._users[users.name] = started(cleanup, process)

    def look(self, network: Network, users: Web) -> None:
        """Note the congestion controls of the server's connections."""
        with inside(network.pid(users.sender)):
            channel: socket.socket = sockets.open_probe()
        with channel:
            port = self._ports[users.name]
            self._ccas[users.name] |= {info.cca for info in sockets.read_sockets(channel) if info.source_port == port}

    def finish(self) -> None:
        """Wait for the users, end the servers. Raises LaboratoryError when one of them failed."""
        for name, process in self._users.items():
            finish(process, f"program of the users of {name}")
        for name, process in self._servers.items():
            process.terminate()
            finish(process, f"web server of {name}")

    def achieved(self) -> list[dict[str, Any]]:
        """What was seen of each entry, for achieved.json."""
        return [{"web": name, "ccas": sorted(ccas)} for name, ccas in self._ccas.items()]
