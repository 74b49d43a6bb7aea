# SPDX-License-Identifier: Apache-2.0
"""Nodes and links of a Mininet network that no program has to be started for.

Mininet's own host is a shell in a namespace, and its link is laid by two of these. Here the laboratory's process makes
the namespace and sends the kernel the requests; names, interfaces and the network are Mininet's.
"""

from __future__ import annotations

import os
import socket

from mininet import util
from mininet.link import Link
from mininet.net import Mininet
from mininet.node import Host

from longfat.guest import netlink, rtnetlink
from longfat.guest.namespaces import Namespace

# What Mininet would do before anything else: raise the limit on open files, and start grep to count the processors.
Mininet.inited = True
util.numCores.ncores = os.cpu_count()


class NamespaceHost(Host):  # type: ignore[misc]
    """A host that is a network namespace and shares all else with the laboratory."""

    @classmethod
    def setup(cls) -> None:
        """Mininet would look for the programs that it starts hosts with."""

    def startShell(self, mnopts: object = None) -> None:  # noqa: N802
        """Make the namespace, in place of a shell in one."""
        self.namespace = Namespace.new()


class Veth(Link):  # type: ignore[misc]
    """A link that is a pair of virtual Ethernet interfaces between two hosts that have a ``namespace``."""

    @classmethod
    def makeIntfPair(  # noqa: N802
        cls, name1: str, name2: str, addr1: str, addr2: str, node1: Host, node2: Host, **_: object
    ) -> None:
        """Make both interfaces where they belong. Raises OSError."""
        ends = (name1, addr1, node1.namespace.descriptor), (name2, addr2, node2.namespace.descriptor)
        with netlink.open_socket(socket.NETLINK_ROUTE) as channel:
            netlink.change(channel, [rtnetlink.veth(*ends)])
