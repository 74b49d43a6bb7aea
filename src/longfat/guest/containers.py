# SPDX-License-Identifier: Apache-2.0
"""Docker containers as hosts in Mininet, through Containernet's interface (``Containernet``, ``addDocker``).

Containernet is used if the interpreter has it; it is in no package registry and replaces Mininet where it is installed.
Otherwise the two classes here, on plain Mininet, replace it. A container has its own programs and files; ip, tc and
tcpdump run outside, in the container's network namespace.
"""

from __future__ import annotations

from pathlib import Path
from subprocess import Popen
from typing import IO, Any

import docker
from mininet.net import Mininet
from mininet.node import Host

from longfat.guest.nodes import Namespace
from longfat.guest.sysctls import GuestError
from longfat.spec.runspec import Node
from longfat.system.parent import end_with_parent

SOCKET = "unix:///run/docker.sock"
USERLAND = Path("/task/userland.tar")
"""The project's userland, imported into Docker as an image for the first host that needs it."""


class Docker(Host):  # type: ignore[misc]
    """A Mininet host in a container; the name is Containernet's.

    The container lives as long as this process holds its standard input open, so it also ends after a kill.
    """

    def __init__(self, name: str, dimage: str, client: docker.APIClient, **params: Any) -> None:
        self.dimage = dimage
        self.client = client
        super().__init__(name, **params)

    def startShell(self, mnopts: object = None) -> None:  # noqa: N802
        """Create and start the container; only links give it a network."""
        settings = self.client.create_host_config(network_mode="none", auto_remove=True)
        try:
            container = self.client.create_container(
                self.dimage, ["cat"], stdin_open=True, detach=False, hostname=self.name, host_config=settings
            )
            self.container: str = container["Id"]
            params = {"stdin": 1, "stdout": 1, "stream": 1}
            self.held_input = self.client.attach_socket(self.container, params=params)
            self.client.start(self.container)
            state = self.client.inspect_container(self.container)["State"]
        except docker.errors.DockerException as error:
            raise GuestError(f"{self.name}: Docker cannot make a host from image {self.dimage!r}: {error}") from error
        if not state["Running"]:
            raise GuestError(
                f"{self.name}: the container of image {self.dimage!r} ended; the image must have the program cat"
            )
        self.pid = state["Pid"]

    def terminate(self) -> None:
        """Remove the container at once."""
        self.held_input.close()
        try:
            self.client.remove_container(self.container, force=True)
        except docker.errors.APIError:
            return  # already in removal, because its input was closed


class Containernet(Mininet):  # type: ignore[misc]
    """Mininet with containers; the name is Containernet's."""

    def __init__(self, client: docker.APIClient, **params: Any) -> None:
        self.client = client
        super().__init__(**params)

    def addDocker(self, name: str, **params: Any) -> Host:  # noqa: N802
        """Add a host made from the image ``dimage``."""
        return self.addHost(name, cls=Docker, client=self.client, **params)


class Containers:
    """Hosts of a network from images: the image of the node, else ``userland``."""

    def __init__(self, userland: str, late_us: int) -> None:
        self.late_us = late_us
        self.wires = False
        self.client = docker.APIClient(base_url=SOCKET)
        self.userland = userland

    def network(self) -> Mininet:
        """Return an empty network, of Containernet if it is installed."""
        try:
            from mininet.net import Containernet as Installed
        except ImportError:
            return Containernet(self.client, build=False, controller=None)
        return Installed(build=False, controller=None)

    def add_host(self, network: Mininet, node: Node) -> Host:
        """Add a container without a network of Docker."""
        image = node.image or self.userland
        if image == self.userland and not self.client.images(image, quiet=True):
            repository, _, tag = image.partition(":")
            self.client.import_image_from_file(str(USERLAND), repository=repository, tag=tag)
        host = network.addDocker(node.name, dimage=image, network_mode="none", ip=None)
        host.namespace = Namespace.of(host.pid)
        return host

    def start(self, host: Host, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """Start a program of the container in it; both end with this process.

        ``docker exec`` would leave the program behind after a kill of its caller.
        """
        enter = ["nsenter", f"--target={host.pid}", "--mount", "--uts", "--ipc", "--net", "--root", "--wd=/"]
        return Popen([*enter, "--", *command], stdout=output, stderr=output, preexec_fn=end_with_parent)
