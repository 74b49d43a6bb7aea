# SPDX-License-Identifier: Apache-2.0
"""Nodes and links of a Mininet network as network namespaces and requests of this process, without programs.

Mininet's own host is a shell in a namespace, and its link is made by two programs.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from mininet import util
from mininet.link import Link
from mininet.net import Mininet
from mininet.node import Host

from longfat.guest import netlink, rtnetlink

CLONE_NEWNET = 0x40000000  # linux/sched.h

# Mininet would first raise the limit on open files, and start grep to count the processors.
Mininet.inited = True
util.numCores.ncores = os.cpu_count()

_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace. It lives until it is closed here and has no process and no socket."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def new(cls) -> Namespace:
        """Make a namespace whose only interface, lo, is down. Raises OSError."""
        home = _home()
        _check(_libc.unshare(CLONE_NEWNET))
        try:
            return cls(_open("self"))
        finally:
            _check(_libc.setns(home, CLONE_NEWNET))

    @classmethod
    def of(cls, pid: int) -> Namespace:
        """Open the namespace of the process ``pid``. Raises OSError."""
        _home()
        return cls(_open(pid))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Enter the namespace: sockets and programs opened meanwhile stay in it. Raises OSError."""
        _check(_libc.setns(self.descriptor, CLONE_NEWNET))
        try:
            yield
        finally:
            _check(_libc.setns(_home(), CLONE_NEWNET))

    def close(self) -> None:
        """Release the namespace."""
        os.close(self.descriptor)


@cache
def _home() -> int:
    """Return the namespace of this process at the first call."""
    return _open("self")


def _open(process: int | str) -> int:
    return os.open(f"/proc/{process}/ns/net", os.O_RDONLY)


def _check(status: int) -> None:
    if status:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class NamespaceHost(Host):  # type: ignore[misc]
    """A host that is a network namespace and shares everything else with this process."""

    @classmethod
    def setup(cls) -> None:
        """Do nothing: Mininet would look for the programs that start its hosts."""

    def startShell(self, mnopts: object = None) -> None:  # noqa: N802
        """Make the namespace, instead of a shell in one."""
        self.namespace = Namespace.new()


class Veth(Link):  # type: ignore[misc]
    """A pair of virtual Ethernet interfaces between two hosts with a ``namespace``."""

    @classmethod
    def makeIntfPair(  # noqa: N802
        cls, name1: str, name2: str, addr1: str, addr2: str, node1: Host, node2: Host, **_: object
    ) -> None:
        """Make both interfaces in their namespaces. Raises OSError."""
        ends = (name1, addr1, node1.namespace.descriptor), (name2, addr2, node2.namespace.descriptor)
        with netlink.open_socket(socket.NETLINK_ROUTE) as channel:
            netlink.change(channel, [rtnetlink.veth(*ends)])
