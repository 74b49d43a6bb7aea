# SPDX-License-Identifier: Apache-2.0
"""The topology of a RunSpec as a running Mininet network: built, tuned, read back, taken down.

Where several machines take part in a run, this is what one of them has of it.
"""

from __future__ import annotations

import fcntl
import json
import socket
import struct
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen, run
from types import TracebackType
from typing import IO, Any, Protocol

from mininet.net import Mininet
from mininet.node import Host

from longfat.guest import netlink, offloads, policers, qdisc, queues, rtnetlink, tc
from longfat.guest.carriers import wait_until_up
from longfat.guest.nodes import NamespaceHost, Veth
from longfat.guest.sysctls import GLOBAL_SYSCTLS, LaboratoryError, read_sysctl, write_sysctl
from longfat.guest.wire import Wire, read_wires
from longfat.network import PREFIX_BITS, Port, Topology, impairment_seed, lay_out, processing_seed
from longfat.runspec import Node, RunSpec

SIOCGIFMTU = 0x8921
LOOPBACK = 1  # index of lo in each namespace (net/loopback.c)
LONGEST_QUEUE = 32767  # rtnetlink takes no longer txqueuelen; what counts is the limit of the qdisc


class Maker(Protocol):
    """What hosts are made of: an empty network for them, how one is added, how a program of its own is started.

    A host has its network namespace as ``namespace``. ``late_us`` is how late timers may be here; ``wires`` tells
    whether the kernel's interfaces keep rate and delay themselves (longfat.guest.wire).
    """

    @property
    def late_us(self) -> int: ...

    @property
    def wires(self) -> bool: ...

    def network(self) -> Mininet: ...

    def add_host(self, network: Mininet, node: Node) -> Host: ...

    def start(self, host: Host, command: list[str], output: IO[bytes]) -> Popen[bytes]: ...


@dataclass(frozen=True)
class Namespaces:
    """Hosts that are network namespaces and share all else with the laboratory."""

    late_us: int = 0
    wires: bool = False

    def network(self) -> Mininet:
        """An empty network."""
        return Mininet(build=False, controller=None)

    def add_host(self, network: Mininet, node: Node) -> Host:
        """A namespace that no program is needed for."""
        return network.addHost(node.name, cls=NamespaceHost, ip=None)

    def start(self, host: Host, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """A program of the host is one of the laboratory's."""
        with host.namespace.inside():
            return Popen(command, stdout=output, stderr=output)


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
        self._spec = spec
        self._server_ccas = {web.sender: web.cca for web in spec.web}
        self._part = part or whole(spec)
        self._maker = maker or Namespaces()
        self.topology: Topology = lay_out(spec)
        self.nodes = tuple(node for node in spec.nodes if node.name in self._part.nodes)
        self.ports = {node.name: self.topology.ports[node.name] for node in self.nodes}
        self._scratch = scratch
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
            host.namespace.close()

    def inside(self, node: str) -> AbstractContextManager[None]:
        """Be in the node's network namespace: what is opened and started meanwhile stays in it."""
        inside: AbstractContextManager[None] = self._hosts[node].namespace.inside()
        return inside

    def start(self, node: str, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """Start a program of a node; its standard output and error go to ``output``."""
        return self._maker.start(self._hosts[node], command, output)

    def start_tool(self, node: str, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """Start a program of the laboratory in a node's network namespace, whatever else the node is made of."""
        with self.inside(node):
            return Popen(command, stdout=output, stderr=output)

    def has_socket(self, node: str, port: int, state: int) -> bool:
        """Whether a node has a TCP socket of a port of its own in a state (enum tcp_states in net/tcp_states.h)."""
        with self.inside(node):
            rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
        return any(row[1].endswith(f":{port:04X}") and int(row[3], 16) == state for row in rows)

    def _tool(self, node: str, command: list[str]) -> str:
        """What a program of the laboratory says in a node's network namespace."""
        with self.inside(node):
            done = run(command, stdout=PIPE, stderr=STDOUT, text=True, check=False)
        return done.stdout.strip()

    def batch(self, node: str, lines: list[str]) -> None:
        """Do what lines for ``tc -batch`` say on a node. Raises LaboratoryError."""
        if not lines:
            return
        with self.inside(node), netlink.open_socket(socket.NETLINK_ROUTE) as channel:
            indices = {name: index for index, name in socket.if_nameindex()}
            asked = {line: tc.request(line, indices) for line in lines}
            # A queue is inside what limits the rate of its interface, which only tc can ask for.
            self._batch_of_tc(node, [line for line, request in asked.items() if not request])
            self._change(node, channel, [request for request in asked.values() if request])

    def _batch_of_tc(self, node: str, lines: list[str]) -> None:
        if not lines:
            return
        path = self._scratch / f"{node}.tc"
        path.write_text("\n".join(lines) + "\n")
        output = self._tool(node, ["tc", "-batch", str(path)])
        if output:
            raise LaboratoryError(f"{node}: tc -batch: {output}\n" + "\n".join(lines))

    def _change(self, where: str, channel: socket.socket, requests: list[netlink.Request]) -> None:
        try:
            netlink.change(channel, requests)
        except OSError as error:
            raise LaboratoryError(f"{where}: {error.strerror}") from error

    def achieved(self, before: dict[str, int]) -> dict[str, Any]:
        """Read back sysctls, offloads, MTU and qdiscs: ``nodes`` and ``interfaces`` of achieved.json.

        ``before`` holds the interface's drops that are not the run's, as ``drops`` gave them at its start.
        """
        nodes: dict[str, Any] = {}
        interfaces = []
        for node in self.nodes:
            sysctls = {name: read_sysctl(name) for name in node.sysctls if name in GLOBAL_SYSCTLS}
            with self.inside(node.name):
                sysctls.update((name, read_sysctl(name)) for name in node.sysctls if name not in GLOBAL_SYSCTLS)
                on = sorted({name for port in self.ports[node.name] for name in offloads.offloads_on(port.name)})
            nodes[node.name] = {"sysctls": sysctls, "offloads_on": on}
            qdiscs = self.qdiscs(node.name)
            with self.inside(node.name):
                wires = read_wires() if self._maker.wires else {}
            for port in self.ports[node.name]:
                found = qdisc.achieved_egress(qdiscs, port.name, wires.get(port.name))
                found["drops"] -= before.get(port.name, 0)
                found |= self._policed(port)
                with self.inside(node.name):
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
        with self.inside(node), queues.open_probe() as channel:
            states = list(queues.read_qdiscs(channel))
            told = tc.shown(states, dict(socket.if_nameindex()))
        if len(told) == len(states):
            return told
        own = {(one["dev"], one["handle"]): one for one in told}
        by_tc = self._json(node, ["tc", "-s", "-d", "-j", "qdisc", "show"])
        return [own.get((one["dev"], one["handle"]), one) for one in by_tc]

    def drop_hooks(self) -> list[tuple[Port, qdisc.Hook]]:
        """The ports of this machine with deliberate drops, and where these happen.

        A router drops packets as they leave. Those of a host are dropped where they arrive: its own TCP would notice.
        """
        routers, hooks = {node.name for node in self.nodes if node.role == "router"}, []
        for port in (port for ports in self.ports.values() for port in ports if port.egress.drops):
            peer = self.topology.far_end(port)
            leaves, arrives = qdisc.Hook(port.node, port.name, "egress"), qdisc.Hook(peer.node, peer.name, "ingress")
            hooks.append((port, leaves if port.node in routers else arrives))
        return hooks

    def filter_drops(self, hook: qdisc.Hook) -> int:
        """Packets that the deliberate drop at a hook has taken so far."""
        node, command = hook.node, ["tc", "-s", "-j", "filter", "show", "dev", hook.interface, hook.direction]
        filters = self._json(node, command)
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
        for number, link in enumerate(self._spec.links):
            ends = [end.node for end in (link.a, link.b) if end.node in self._hosts]
            names = [port.name for end in ends for port in self.ports[end] if port.link == number]
            if len(ends) == 2:
                # "up" comes below: Mininet would start ifconfig for each interface.
                self._net.addLink(
                    *(self._hosts[end] for end in ends),
                    cls=Veth,
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
        hooks = {(hook.node, hook.interface): None for _port, hook in self.drop_hooks()}
        hooks |= {(port.node, port.name): None for port in self._policed_ports()}
        for node_name, interface in hooks:
            self.batch(node_name, [qdisc.hook_command(interface)])
        for port in self._policed_ports():
            with self.inside(port.node), netlink.open_socket(socket.NETLINK_ROUTE) as channel:
                assert port.egress.policer
                request = policers.request(socket.if_nametoindex(port.name), port.egress.policer)
                self._change(port.node, channel, [request])

        for name, ports in self.ports.items():
            with self.inside(name):
                wait_until_up(port.name for port in ports)

    def _policed_ports(self) -> list[Port]:
        return [port for ports in self.ports.values() for port in ports if port.egress.policer]

    def _policed(self, port: Port) -> dict[str, Any]:
        """What is read back of a port's policer; nothing for a port without one."""
        if not port.egress.policer:
            return {}
        with self.inside(port.node), netlink.open_socket(socket.NETLINK_ROUTE) as channel:
            question = policers.question(socket.if_nametoindex(port.name))
            used = policers.read(netlink.dump(channel, policers.RTM_GETTFILTER, question))
        return {"policer": {**asdict(used.policer), "drops": used.drops} if used else None}

    def _take_card(self, card: str, node: str, name: str) -> None:
        """Make a card of this machine an interface of a node; the kernel gives it back when the node is gone."""
        try:
            request = rtnetlink.moved(socket.if_nametoindex(card), name, self._hosts[node].namespace.descriptor)
            with netlink.open_socket(socket.NETLINK_ROUTE) as channel:
                netlink.change(channel, [request])
        except OSError as error:
            raise LaboratoryError(f"{node}: card {card}: {error.strerror}") from error

    def _tune(self, node: Node) -> None:
        """Configure one node: addresses and routes, qdiscs, sysctls, offloads."""
        ports = self.ports[node.name]
        self._set_links(node, ports)
        self.batch(node.name, [line for port in ports for line in self._egress_lines(port)])
        try:
            for name in sorted(node.sysctls.keys() & GLOBAL_SYSCTLS):
                write_sysctl(name, node.sysctls[name])
            with self.inside(node.name):
                for name in sorted(node.sysctls.keys() - GLOBAL_SYSCTLS):
                    write_sysctl(name, node.sysctls[name])
                for port in ports:
                    offloads.set_offloads(port.name, node.offloads)
        except LaboratoryError as error:
            raise LaboratoryError(f"{node.name}: {error}") from error

    def _egress_lines(self, port: Port) -> list[str]:
        if port.egress.card:
            return qdisc.card_commands(port.name, port.egress.card)
        if port.egress.impairment:
            return [qdisc.impairment_command(port.name, port.egress, impairment_seed(self._spec, port))]
        if self._maker.wires:
            return qdisc.queue_commands(port.name, port.egress)
        return qdisc.egress_commands(port.name, port.egress, port.mtu_bytes, self._maker.late_us)

    def _set_links(self, node: Node, ports: tuple[Port, ...]) -> None:
        """Bring the node's interfaces up, with wires, addresses, routes and neighbours."""
        with self.inside(node.name), netlink.open_socket(socket.NETLINK_ROUTE) as channel:
            indices = {port.name: socket.if_nametoindex(port.name) for port in ports}
            wires = [
                (indices[port.name], Wire.of(port.egress, processing_seed(self._spec, port)))
                for port in ports
                if self._maker.wires
            ]
            requests = [wire.request(index) for index, wire in wires if wire]
            requests += [*link_requests(node, ports, indices), *self._route_requests(node, indices)]
            self._change(node.name, channel, requests)

    def _route_requests(self, node: Node, indices: dict[str, int]) -> list[netlink.Request]:
        metrics = rtnetlink.metrics(node.initial_cwnd_segments, self._server_ccas.get(node.name))
        requests = [rtnetlink.route_via(r.subnet, r.via, metrics) for r in self.topology.routes[node.name]]
        for port in self.ports[node.name]:
            index = indices[port.name]
            requests.append(rtnetlink.neighbour(index, port.peer_address, self._peer_hardware(port)))
            if metrics:
                requests.append(rtnetlink.route_to(port.subnet, index, port.address, metrics))
        return requests

    def _peer_hardware(self, port: Port) -> str:
        cable = self._part.cables.get(port.link)
        return cable.peer_address if cable else hardware_address(port.link, 2 if port.address.endswith(".1") else 1)


def link_requests(node: Node, ports: tuple[Port, ...], indices: dict[str, int]) -> list[netlink.Request]:
    """Requests that bring a node's interfaces up; ``indices`` has those of its ports by name.

    Without GSO a socket must build packets of one segment, or a queue would count a burst as one packet.
    """
    segments = None if "gso" in node.offloads else 1
    requests = [rtnetlink.up(LOOPBACK)]
    for port in ports:
        queue = port.egress.queue.limit_packets
        length = min(queue, LONGEST_QUEUE) if port.egress.rate_bps and queue else None
        requests.append(rtnetlink.up(indices[port.name], port.mtu_bytes, length, segments))
        requests.append(rtnetlink.address(indices[port.name], port.address, PREFIX_BITS))
    return requests


def hardware_address(link: int, end: int) -> str:
    """A locally administered Ethernet address for end 1 or 2 of a link."""
    return f"02:00:00:00:{link:02x}:{end:02x}"


def read_mtu(interface: str) -> int:
    """MTU of an interface of the current network namespace, by SIOCGIFMTU."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        answer = fcntl.ioctl(channel, SIOCGIFMTU, struct.pack("16si", interface.encode(), 0).ljust(40, b"\0"))
    (mtu,) = struct.unpack_from("i", answer, 16)
    return int(mtu)
