# SPDX-License-Identifier: Apache-2.0
"""The topology of a RunSpec as a running Mininet network: built, tuned, read back, taken down.

Where several machines take part in a run, this is what one of them has of it.
"""

from __future__ import annotations

import fcntl
import json
import resource
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen, run
from types import TracebackType
from typing import IO, Any, Protocol

from mininet.link import Link
from mininet.net import Mininet
from mininet.node import Host

from longfat.lab import offloads, qdisc
from longfat.lab.namespaces import inside
from longfat.lab.sysctls import GLOBAL_SYSCTLS, LaboratoryError, read_sysctl, write_sysctl
from longfat.lab.topology import Port, Topology, lay_out
from longfat.runspec import Node, RunSpec

SIOCGIFMTU = 0x8921
LONGEST_QUEUE = 32767  # rtnetlink takes no longer txqueuelen; what counts is the limit of the qdisc
OPEN_FILES = 512  # more than a laboratory of fifty nodes and a hundred flows needs


class Maker(Protocol):
    """What hosts are made of: an empty network for them, how one is added, how a program of its own is started.

    ``late_us`` is how late timers may be here.
    """

    @property
    def late_us(self) -> int: ...

    def network(self) -> Mininet: ...

    def add_host(self, network: Mininet, node: Node) -> Host: ...

    def start(self, host: Host, command: list[str], output: IO[bytes]) -> Popen[bytes]: ...


@dataclass(frozen=True)
class Namespaces:
    """Hosts as Mininet makes them: network namespaces that share all else with the laboratory."""

    late_us: int = 0

    def network(self) -> Mininet:
        """An empty network."""
        return Mininet(build=False, controller=None)

    def add_host(self, network: Mininet, node: Node) -> Host:
        """A shell in a network namespace of its own."""
        return network.addHost(node.name, ip=None)

    def start(self, host: Host, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """A program of the host is one of the laboratory's."""
        process: Popen[bytes] = host.popen(command, stdout=output, stderr=output)
        return process


@dataclass(frozen=True)
class Cable:
    """A link to another machine: the card at its end here, and the hardware address of the card at the other end."""

    card: str
    peer_address: str


@dataclass(frozen=True)
class Part:
    """What of a run is on this machine: its nodes by name, and the links that leave it by their number."""

    nodes: frozenset[str]
    cables: Mapping[int, Cable] = field(default_factory=dict)


def whole(spec: RunSpec) -> Part:
    """All of a run on one machine."""
    return Part(frozenset(node.name for node in spec.nodes))


class Network:
    """A Mininet network as a context: everything in it is gone when the context ends.

    ``nodes`` and ``ports`` are those of this machine, ``topology`` is that of the whole run.
    """

    def __init__(self, spec: RunSpec, scratch: Path, maker: Maker | None = None, part: Part | None = None) -> None:
        self._links = spec.links
        self._server_ccas = {web.sender: web.cca for web in spec.web}
        self._part = part or whole(spec)
        self._maker = maker or Namespaces()
        self.topology: Topology = lay_out(spec)
        self.nodes = tuple(node for node in spec.nodes if node.name in self._part.nodes)
        self.ports = {node.name: self.topology.ports[node.name] for node in self.nodes}
        self._scratch = scratch
        # Mininet would raise the limit on open files, and mnexec closes each that could be open one by one.
        Mininet.inited = True
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
        self._net = self._maker.network()
        self._hosts: dict[str, Host] = {}

    def __enter__(self) -> Network:
        try:
            self._build()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        """End the hosts. Links go with the namespaces of their ends: Mininet would delete them one by one before."""
        for host in self._hosts.values():
            host.terminate()

    def pid(self, node: str) -> int:
        """Process that holds the node's namespaces."""
        pid: int = self._hosts[node].pid
        return pid

    def start(self, node: str, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """Start a program of a node; its standard output and error go to ``output``."""
        return self._maker.start(self._hosts[node], command, output)

    def start_tool(self, node: str, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """Start a program of the laboratory in a node's network namespace, whatever else the node is made of."""
        with inside(self.pid(node)):
            return Popen(command, stdout=output, stderr=output)

    def _tool(self, node: str, command: list[str]) -> str:
        """What a program of the laboratory says in a node's network namespace."""
        with inside(self.pid(node)):
            done = run(command, stdout=PIPE, stderr=STDOUT, text=True, check=False)
        return done.stdout.strip()

    def batch(self, node: str, program: str, lines: list[str]) -> None:
        """Run the lines through ``ip -batch`` or ``tc -batch`` on a node. Raises LaboratoryError."""
        if not lines:
            return
        path = self._scratch / f"{node}.{program}"
        path.write_text("\n".join(lines) + "\n")
        output = self._tool(node, [program, "-batch", str(path)])
        if output:
            raise LaboratoryError(f"{node}: {program} -batch: {output}\n" + "\n".join(lines))

    def achieved(self, before: dict[str, int]) -> dict[str, Any]:
        """Read back sysctls, offloads, MTU and qdiscs: ``nodes`` and ``interfaces`` of achieved.json.

        ``before`` holds the interface's drops that are not the run's, as ``drops`` gave them at its start.
        """
        nodes: dict[str, Any] = {}
        interfaces = []
        for node in self.nodes:
            sysctls = {name: read_sysctl(name) for name in node.sysctls if name in GLOBAL_SYSCTLS}
            with inside(self.pid(node.name)):
                sysctls.update((name, read_sysctl(name)) for name in node.sysctls if name not in GLOBAL_SYSCTLS)
                on = sorted({name for port in self.ports[node.name] for name in offloads.offloads_on(port.name)})
            nodes[node.name] = {"sysctls": sysctls, "offloads_on": on}
            qdiscs = self.qdiscs(node.name)
            for port in self.ports[node.name]:
                found = qdisc.achieved_egress(qdiscs, port.name)
                found["drops"] -= before.get(port.name, 0)
                with inside(self.pid(node.name)):
                    mtu = read_mtu(port.name)
                interfaces.append({"node": node.name, "interface": port.name, "mtu_bytes": mtu, **found})
        return {"nodes": nodes, "interfaces": interfaces}

    def drops(self) -> dict[str, int]:
        """Packets dropped so far by the qdiscs of each interface."""
        found: dict[str, int] = {}
        for name, ports in self.ports.items():
            qdiscs = self.qdiscs(name)
            found.update((port.name, qdisc.achieved_egress(qdiscs, port.name)["drops"]) for port in ports)
        return found

    def qdiscs(self, node: str) -> list[dict[str, Any]]:
        """All qdiscs of a node with statistics, as ``tc`` tells them."""
        return self._json(node, ["tc", "-s", "-d", "-j", "qdisc", "show"])

    def filter_drops(self, node: str, interface: str) -> int:
        """Packets that the deliberate drop of an interface has taken so far."""
        filters = self._json(node, ["tc", "-s", "-j", "filter", "show", "dev", interface, "egress"])
        actions = [action for entry in filters for action in entry.get("options", {}).get("actions", [])]
        return sum(action["stats"]["drops"] for action in actions)

    def _json(self, node: str, command: list[str]) -> list[dict[str, Any]]:
        output = self._tool(node, command)
        try:
            answer: list[dict[str, Any]] = json.loads(output or "[]")
        except ValueError as error:
            raise LaboratoryError(f"{node}: {' '.join(command)}: {output[-300:]}") from error
        return answer

    def _build(self) -> None:
        for node in self.nodes:
            self._hosts[node.name] = self._maker.add_host(self._net, node)
        for number, link in enumerate(self._links):
            ends = [end.node for end in (link.a, link.b) if end.node in self._hosts]
            names = [port.name for end in ends for port in self.ports[end] if port.link == number]
            if len(ends) == 2:
                # "up" is left to the batch below: Mininet would start ifconfig for each interface.
                self._net.addLink(
                    *(self._hosts[end] for end in ends),
                    cls=Link,
                    intfName1=names[0],
                    intfName2=names[1],
                    addr1=hardware_address(number, 1),
                    addr2=hardware_address(number, 2),
                    up=None,
                )
            elif ends:
                self._take_card(self._part.cables[number].card, ends[0], names[0])
        for node in self.nodes:
            self._tune(node)

    def _take_card(self, card: str, node: str, name: str) -> None:
        """Make a card of this machine an interface of a node; the kernel gives it back when the node is gone."""
        command = ["ip", "link", "set", "dev", card, "netns", str(self.pid(node)), "name", name]
        done = run(command, stdout=PIPE, stderr=STDOUT, text=True, check=False)
        if done.returncode:
            raise LaboratoryError(f"{node}: {' '.join(command)}: {done.stdout.strip()}")

    def _tune(self, node: Node) -> None:
        """Configure one node: addresses and routes, qdiscs, sysctls, offloads."""
        ports = self.ports[node.name]
        self.batch(node.name, "ip", [*link_lines(node, ports), *self._route_lines(node)])
        self.batch(
            node.name,
            "tc",
            [line for p in ports for line in qdisc.egress_commands(p.name, p.egress, p.mtu_bytes, self._maker.late_us)],
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
        metrics = f" initcwnd {node.initial_cwnd_segments}" if node.initial_cwnd_segments else ""
        if node.name in self._server_ccas:
            metrics += f" congctl {self._server_ccas[node.name]}"
        lines = [f"route add {r.subnet} via {r.via}{metrics}" for r in self.topology.routes[node.name]]
        for port in self.ports[node.name]:
            lines.append(f"neigh add {port.peer_address} dev {port.name} lladdr {self._peer_hardware(port)}")
            if metrics:
                lines.append(f"route replace 10.0.{port.link}.0/30 dev {port.name} src {port.address}{metrics}")
        return lines

    def _peer_hardware(self, port: Port) -> str:
        cable = self._part.cables.get(port.link)
        return cable.peer_address if cable else hardware_address(port.link, 2 if port.address.endswith(".1") else 1)


def link_lines(node: Node, ports: tuple[Port, ...]) -> list[str]:
    """``ip -batch`` lines that bring a node's interfaces up.

    Without GSO a socket must build packets of one segment, or a queue would count a burst as one packet.
    """
    segments = "" if "gso" in node.offloads else " gso_max_segs 1"
    lines = ["link set lo up"]
    for port in ports:
        queue = port.egress.queue.limit_packets
        length = f" txqueuelen {min(queue, LONGEST_QUEUE)}" if port.egress.rate_bps and queue else ""
        lines.append(f"link set {port.name} mtu {port.mtu_bytes}{length}{segments} up")
        lines.append(f"addr add {port.address}/30 dev {port.name}")
    return lines


def hardware_address(link: int, end: int) -> str:
    """A locally administered Ethernet address for end 1 or 2 of a link."""
    return f"02:00:00:00:{link:02x}:{end:02x}"


def read_mtu(interface: str) -> int:
    """MTU of an interface of the current network namespace, by SIOCGIFMTU."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        answer = fcntl.ioctl(channel, SIOCGIFMTU, struct.pack("16si", interface.encode(), 0).ljust(40, b"\0"))
    (mtu,) = struct.unpack_from("i", answer, 16)
    return int(mtu)
