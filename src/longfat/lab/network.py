# SPDX-License-Identifier: Apache-2.0
"""The topology of a RunSpec as a running Mininet network: built, tuned, read back, taken down."""

from __future__ import annotations

import fcntl
import json
import resource
import socket
import struct
from pathlib import Path
from subprocess import Popen
from types import TracebackType
from typing import IO, Any

from mininet.link import Link
from mininet.net import Mininet
from mininet.node import Host

from longfat.lab import offloads, qdisc
from longfat.lab.namespaces import inside
from longfat.lab.topology import Port, Topology, lay_out
from longfat.runspec import Node, RunSpec

SIOCGIFMTU = 0x8921
OPEN_FILES = 512  # more than a laboratory of fifty nodes and a hundred flows needs
GLOBAL_SYSCTLS = frozenset(
    f"net.core.{limit}" for limit in ("rmem_max", "wmem_max", "rmem_default", "wmem_default", "netdev_max_backlog")
)
"""Limits that Linux 6.12 keeps for the whole machine and does not show in a network namespace of its own."""


class LaboratoryError(Exception):
    """The network could not be built or tuned as the RunSpec says."""


class Network:
    """A Mininet network as a context: everything in it is gone when the context ends."""

    def __init__(self, spec: RunSpec, scratch: Path) -> None:
        self.spec = spec
        self.topology: Topology = lay_out(spec)
        self._scratch = scratch
        # Mininet would raise the limit on open files, and mnexec closes each that could be open one by one.
        Mininet.inited = True
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
        self._net = Mininet(build=False, controller=None)
        self._hosts: dict[str, Host] = {}

    def __enter__(self) -> Network:
        try:
            self._build()
        except BaseException:
            self._net.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._net.stop()

    def pid(self, node: str) -> int:
        """Process that holds the node's namespaces."""
        pid: int = self._hosts[node].pid
        return pid

    def start(self, node: str, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """Start a program on a node; its standard output and error go to ``output``."""
        process: Popen[bytes] = self._hosts[node].popen(command, stdout=output, stderr=output)
        return process

    def batch(self, node: str, program: str, lines: list[str]) -> None:
        """Run the lines through ``ip -batch`` or ``tc -batch`` on a node. Raises LaboratoryError."""
        if not lines:
            return
        path = self._scratch / f"{node}.{program}"
        path.write_text("\n".join(lines) + "\n")
        output = self._hosts[node].cmd(f"{program} -batch {path}").strip()
        if output:
            raise LaboratoryError(f"{node}: {program} -batch: {output}\n" + "\n".join(lines))

    def achieved(self, before: dict[str, int]) -> dict[str, Any]:
        """Read back sysctls, offloads, MTU and qdiscs: ``nodes`` and ``interfaces`` of achieved.json.

        ``before`` holds the interface's drops that are not the run's, as ``drops`` gave them at its start.
        """
        nodes: dict[str, Any] = {}
        interfaces = []
        for node in self.spec.nodes:
            sysctls = {name: read_sysctl(name) for name in node.sysctls if name in GLOBAL_SYSCTLS}
            with inside(self.pid(node.name)):
                sysctls.update((name, read_sysctl(name)) for name in node.sysctls if name not in GLOBAL_SYSCTLS)
                on = sorted({name for port in self._ports(node) for name in offloads.offloads_on(port.name)})
            nodes[node.name] = {"sysctls": sysctls, "offloads_on": on}
            qdiscs = self.qdiscs(node.name)
            for port in self._ports(node):
                found = qdisc.achieved_egress(qdiscs, port.name)
                found["drops"] -= before.get(port.name, 0)
                with inside(self.pid(node.name)):
                    mtu = read_mtu(port.name)
                interfaces.append({"node": node.name, "interface": port.name, "mtu_bytes": mtu, **found})
        return {"nodes": nodes, "interfaces": interfaces}

    def drops(self) -> dict[str, int]:
        """Packets dropped so far by the qdiscs of each interface."""
        return {
            port.name: qdisc.achieved_egress(self.qdiscs(name), port.name)["drops"]
            for name, ports in self.topology.ports.items()
            for port in ports
        }

    def qdiscs(self, node: str) -> list[dict[str, Any]]:
        """All qdiscs of a node with statistics, as ``tc`` tells them."""
        return self._json(node, "tc -s -j qdisc show")

    def filter_drops(self, node: str, interface: str) -> int:
        """Packets that the deliberate drop of an interface has taken so far."""
        filters = self._json(node, f"tc -s -j filter show dev {interface} egress")
        actions = [action for entry in filters for action in entry.get("options", {}).get("actions", [])]
        return sum(action["stats"]["drops"] for action in actions)

    def _json(self, node: str, command: str) -> list[dict[str, Any]]:
        output = self._hosts[node].cmd(command).strip()
        try:
            answer: list[dict[str, Any]] = json.loads(output or "[]")
        except ValueError as error:
            raise LaboratoryError(f"{node}: {command}: {output[-300:]}") from error
        return answer

    def _ports(self, node: Node) -> tuple[Port, ...]:
        return self.topology.ports[node.name]

    def _build(self) -> None:
        for node in self.spec.nodes:
            self._hosts[node.name] = self._net.addHost(node.name, ip=None)
        for number, link in enumerate(self.spec.links):
            # "up" is left to the batch below: Mininet would start ifconfig for each interface.
            self._net.addLink(
                *(self._hosts[link.a.node], self._hosts[link.b.node]),
                cls=Link,
                addr1=hardware_address(number, 1),
                addr2=hardware_address(number, 2),
                up=None,
            )
        for node in self.spec.nodes:
            self._tune(node)

    def _tune(self, node: Node) -> None:
        """Configure one node: addresses and routes, qdiscs, sysctls, offloads."""
        ports = self._ports(node)
        self.batch(node.name, "ip", [*link_lines(node, ports), *self._route_lines(node)])
        self.batch(
            node.name,
            "tc",
            [line for p in ports for line in qdisc.egress_commands(p.name, p.egress, p.mtu_bytes)],
        )
        try:
            for name in sorted(node.sysctls.keys() & GLOBAL_SYSCTLS):
                write_sysctl(name, node.sysctls[name])
            with inside(self.pid(node.name)):
                for name in sorted(node.sysctls.keys() - GLOBAL_SYSCTLS):
                    write_sysctl(name, node.sysctls[name])
                for port in ports:
                    offloads.set_offloads(port.name, node.offloads)
        except LaboratoryError as error:
            raise LaboratoryError(f"{node.name}: {error}") from error

    def _route_lines(self, node: Node) -> list[str]:
        window = f" initcwnd {node.initial_cwnd_segments}" if node.initial_cwnd_segments else ""
        lines = [f"route add {r.subnet} via {r.via}{window}" for r in self.topology.routes[node.name]]
        for port in self._ports(node):
            end = 2 if port.address.endswith(".1") else 1
            lines.append(f"neigh add {port.peer_address} dev {port.name} lladdr {hardware_address(port.link, end)}")
            if window:
                lines.append(f"route replace 10.0.{port.link}.0/30 dev {port.name} src {port.address}{window}")
        return lines


def link_lines(node: Node, ports: tuple[Port, ...]) -> list[str]:
    """``ip -batch`` lines that bring a node's interfaces up.

    Without GSO a socket must build packets of one segment, or a queue would count a burst as one packet.
    """
    segments = "" if "gso" in node.offloads else " gso_max_segs 1"
    lines = ["link set lo up"]
    for port in ports:
        queue = port.egress.queue.limit_packets
        length = f" txqueuelen {queue}" if port.egress.rate_bps and queue else ""
        lines.append(f"link set {port.name} mtu {port.mtu_bytes}{length}{segments} up")
        lines.append(f"addr add {port.address}/30 dev {port.name}")
    return lines


def hardware_address(link: int, end: int) -> str:
    """A locally administered Ethernet address for end 1 or 2 of a link."""
    return f"02:00:00:00:{link:02x}:{end:02x}"


def sysctl_path(name: str) -> Path:
    """The file of a sysctl given by its dotted name."""
    return Path("/proc/sys") / name.replace(".", "/")


def write_sysctl(name: str, value: str) -> None:
    """Set a sysctl in the current network namespace. Raises LaboratoryError when the kernel refuses."""
    try:
        sysctl_path(name).write_text(value)
    except FileNotFoundError as error:
        raise LaboratoryError(f"the kernel has no sysctl {name}, which should be {value!r}") from error
    except OSError as error:
        raise LaboratoryError(f"the kernel refuses sysctl {name} = {value!r}: {error.strerror}") from error


def read_sysctl(name: str) -> str:
    """A sysctl of the current network namespace, fields separated by single spaces."""
    return " ".join(sysctl_path(name).read_text().split())


def read_mtu(interface: str) -> int:
    """MTU of an interface of the current network namespace, by SIOCGIFMTU."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        answer = fcntl.ioctl(channel, SIOCGIFMTU, struct.pack("16si", interface.encode(), 0).ljust(40, b"\0"))
    (mtu,) = struct.unpack_from("i", answer, 16)
    return int(mtu)
