# SPDX-License-Identifier: Apache-2.0
"""The topology of a RunSpec as a Mininet network on this machine: built, tuned, read back, removed."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen, run
from types import TracebackType
from typing import IO, Any, Protocol

from mininet.net import Mininet
from mininet.node import Host

from longfat.guest import netlink, policers, qdisc, queues, rtnetlink, tc
from longfat.guest.interfaces import offloads_on, read_mtu, set_offloads, wait_until_up
from longfat.guest.nodes import NamespaceHost, Veth
from longfat.guest.sysctls import GLOBAL_SYSCTLS, GuestError, read_sysctl, write_sysctl
from longfat.guest.wire import Wire, read_wires
from longfat.spec.network import PREFIX_BITS, Port, Topology, impairment_seed, lay_out, processing_seed
from longfat.spec.runspec import Node, RunSpec

LOOPBACK = 1  # index of lo in every namespace (net/loopback.c)
LONGEST_QUEUE = 32767  # limit of txqueuelen in rtnetlink; the limit of the qdisc is what matters


class Maker(Protocol):
    """Factory of hosts and their programs in a Mininet network.

    A host has its network namespace as ``namespace``. Timers may be late by ``late_us``. With ``wires`` the kernel's
    interfaces keep rate and delay themselves (longfat.guest.wire).
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
    """Hosts that are network namespaces and share everything else with this process."""

    late_us: int = 0
    wires: bool = False

    def network(self) -> Mininet:
        """Return an empty network."""
        return Mininet(build=False, controller=None)

    def add_host(self, network: Mininet, node: Node) -> Host:
        """Add a namespace, without a program."""
        return network.addHost(node.name, cls=NamespaceHost, ip=None)

    def start(self, host: Host, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """Start a program of this machine in the host's namespace."""
        with host.namespace.inside():
            return Popen(command, stdout=output, stderr=output)


@dataclass(frozen=True)
class Cable:
    """A link to another machine: the card here, and the hardware address of the card at the other end."""

    card: str
    peer_address: str


@dataclass(frozen=True)
class Part:
    """The part of a run on this machine: its nodes by name, and its links to other machines by number."""

    nodes: frozenset[str]
    cables: Mapping[int, Cable] = field(default_factory=dict)


class Network:
    """A Mininet network as a context, at the end of which it is removed.

    ``nodes`` and ``ports`` are on this machine; ``topology`` describes the whole run.
    """

    def __init__(self, spec: RunSpec, scratch: Path, maker: Maker | None = None, part: Part | None = None) -> None:
        self._spec = spec
        self._server_ccas = {web.sender: web.cca for web in spec.web}
        self._part = part or Part(frozenset(node.name for node in spec.nodes))
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
        """End the hosts. Their links end with the namespaces; Mininet would delete each."""
        for host in self._hosts.values():
            host.terminate()
            host.namespace.close()

    def inside(self, node: str) -> AbstractContextManager[None]:
        """Enter the node's network namespace: sockets and programs opened meanwhile stay in it."""
        inside: AbstractContextManager[None] = self._hosts[node].namespace.inside()
        return inside

    def start(self, node: str, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """Start a program of a node; its standard output and error go to ``output``."""
        return self._maker.start(self._hosts[node], command, output)

    def start_tool(self, node: str, command: list[str], output: IO[bytes]) -> Popen[bytes]:
        """Start a program of this machine in a node's network namespace, even if the node is a container."""
        with self.inside(node):
            return Popen(command, stdout=output, stderr=output)

    def has_socket(self, node: str, port: int, state: int) -> bool:
        """Return whether a node has a TCP socket with a local port in a state (net/tcp_states.h)."""
        with self.inside(node):
            rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
        return any(row[1].endswith(f":{port:04X}") and int(row[3], 16) == state for row in rows)

    def _tool(self, node: str, command: list[str]) -> str:
        """Return the output of a program of this machine in a node's network namespace."""
        with self.inside(node):
            done = run(command, stdout=PIPE, stderr=STDOUT, text=True, check=False)
        return done.stdout.strip()

    def batch(self, node: str, lines: list[str]) -> None:
        """Execute lines for ``tc -batch`` on a node. Raises GuestError."""
        if not lines:
            return
        with self.inside(node), netlink.open_socket(socket.NETLINK_ROUTE) as channel:
            indices = {name: index for index, name in socket.if_nameindex()}
            asked = {line: tc.request(line, indices) for line in lines}
            # First the lines for tc: a queue may be inside a shaper, which only tc can add.
            self._batch_of_tc(node, [line for line, request in asked.items() if not request])
            self._change(node, channel, [request for request in asked.values() if request])

    def _batch_of_tc(self, node: str, lines: list[str]) -> None:
        if not lines:
            return
        path = self._scratch / f"{node}.tc"
        path.write_text("\n".join(lines) + "\n")
        output = self._tool(node, ["tc", "-batch", str(path)])
        if output:
            raise GuestError(f"{node}: tc -batch: {output}\n" + "\n".join(lines))

    def _change(self, where: str, channel: socket.socket, requests: list[netlink.Request]) -> None:
        try:
            netlink.change(channel, requests)
        except OSError as error:
            raise GuestError(f"{where}: {error.strerror}") from error

    def achieved(self, before: dict[str, int]) -> dict[str, Any]:
        """Read back sysctls, offloads, MTU and qdiscs: ``nodes`` and ``interfaces`` of achieved.json.

        ``before`` has the drops of each interface at the start of the run, from ``drops``.
        """
        nodes: dict[str, Any] = {}
        interfaces = []
        for node in self.nodes:
            sysctls = {name: read_sysctl(name) for name in node.sysctls if name in GLOBAL_SYSCTLS}
            with self.inside(node.name):
                sysctls.update((name, read_sysctl(name)) for name in node.sysctls if name not in GLOBAL_SYSCTLS)
                on = sorted({name for port in self.ports[node.name] for name in offloads_on(port.name)})
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
        """Return the packets dropped so far by the qdiscs of each interface."""
        found: dict[str, int] = {}
        for name, ports in self.ports.items():
            qdiscs = self.qdiscs(name)
            found.update((port.name, qdisc.achieved_egress(qdiscs, port.name)["drops"]) for port in ports)
        return found

    def qdiscs(self, node: str) -> list[dict[str, Any]]:
        """Return all qdiscs of a node with statistics, in the JSON form of ``tc``."""
        with self.inside(node), queues.open_probe() as channel:
            states = list(queues.read_qdiscs(channel))
            known = tc.to_dicts(states, dict(socket.if_nameindex()))
        if len(known) == len(states):
            return known
        own = {(one["dev"], one["handle"]): one for one in known}
        by_tc = self._json(node, ["tc", "-s", "-d", "-j", "qdisc", "show"])
        return [own.get((one["dev"], one["handle"]), one) for one in by_tc]

    def drop_hooks(self) -> list[tuple[Port, qdisc.Hook]]:
        """Return the ports of this machine with deliberate drops, each with the place of the drops.

        A router drops packets at egress. Packets of a host are dropped at their arrival: its own TCP would notice.
        """
        routers, hooks = {node.name for node in self.nodes if node.role == "router"}, []
        for port in (port for ports in self.ports.values() for port in ports if port.egress.drops):
            peer = self.topology.far_end(port)
            leaves, arrives = qdisc.Hook(port.node, port.name, "egress"), qdisc.Hook(peer.node, peer.name, "ingress")
            hooks.append((port, leaves if port.node in routers else arrives))
        return hooks

    def filter_drops(self, hook: qdisc.Hook) -> int:
        """Return the packets that a deliberate drop has taken so far."""
        node, command = hook.node, ["tc", "-s", "-j", "filter", "show", "dev", hook.interface, hook.direction]
        filters = self._json(node, command)
        actions = [action for entry in filters for action in entry.get("options", {}).get("actions", [])]
        return sum(action["stats"]["drops"] for action in actions)

    def _json(self, node: str, command: list[str]) -> list[dict[str, Any]]:
        output = self._tool(node, command)
        try:
            answer: list[dict[str, Any]] = json.loads(output or "[]")
        except ValueError as error:
            raise GuestError(f"{node}: {' '.join(command)}: {output[-300:]}") from error
        return answer

    def _build(self) -> None:
        for node in self.nodes:
            self._hosts[node.name] = self._maker.add_host(self._net, node)
        for number, link in enumerate(self._spec.links):
            ends = [end.node for end in (link.a, link.b) if end.node in self._hosts]
            names = [port.name for end in ends for port in self.ports[end] if port.link == number]
            if len(ends) == 2:
                # Without "up", for which Mininet would start ifconfig for each interface.
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
        """Return the policer of a port as it was read back; empty for a port without a policer."""
        if not port.egress.policer:
            return {}
        with self.inside(port.node), netlink.open_socket(socket.NETLINK_ROUTE) as channel:
            question = policers.question(socket.if_nametoindex(port.name))
            used = policers.read(netlink.dump(channel, policers.RTM_GETTFILTER, question))
        return {"policer": {**asdict(used.policer), "drops": used.drops} if used else None}

    def _take_card(self, card: str, node: str, name: str) -> None:
        """Move a card of this machine into a node; the kernel returns it at the end of the node."""
        try:
            request = rtnetlink.move(socket.if_nametoindex(card), name, self._hosts[node].namespace.descriptor)
            with netlink.open_socket(socket.NETLINK_ROUTE) as channel:
                netlink.change(channel, [request])
        except OSError as error:
            raise GuestError(f"{node}: card {card}: {error.strerror}") from error

    def _tune(self, node: Node) -> None:
        """Configure a node: addresses and routes, qdiscs, sysctls, offloads."""
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
                    set_offloads(port.name, node.offloads)
        except GuestError as error:
            raise GuestError(f"{node.name}: {error}") from error

    def _egress_lines(self, port: Port) -> list[str]:
        if port.egress.card:
            return qdisc.card_commands(port.name, port.egress.card)
        if port.egress.impairment:
            return [qdisc.impairment_command(port.name, port.egress, impairment_seed(self._spec, port))]
        if self._maker.wires:
            return qdisc.queue_commands(port.name, port.egress)
        return qdisc.egress_commands(port.name, port.egress, port.mtu_bytes, self._maker.late_us)

    def _set_links(self, node: Node, ports: tuple[Port, ...]) -> None:
        """Bring the node's interfaces up with wires, addresses, routes and neighbours."""
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
    """Return the requests that bring a node's interfaces up; ``indices`` has the indices of its ports by name.

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
    """Return a locally administered Ethernet address for end 1 or 2 of a link."""
    return f"02:00:00:00:{link:02x}:{end:02x}"
