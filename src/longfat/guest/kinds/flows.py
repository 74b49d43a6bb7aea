# SPDX-License-Identifier: Apache-2.0
"""The iperf2 flows of a run: servers, clients, and observations of their sockets."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from longfat.guest import app_rate, sockets, traffic
from longfat.guest.ccas import parameter_names
from longfat.guest.files import report_of, write_json
from longfat.guest.processes import end_with_run, finish
from longfat.guest.sysctls import GuestError
from longfat.spec.runspec import Flow, RunSpec

if TYPE_CHECKING:  # reports are also written without Mininet
    from longfat.guest.run import RunContext

LOOK_US = 1000  # time before the end of a flow at which all its sockets exist
REPORT_S = 0.5  # longest delay of iperf2's report after the end of a connection


class Traffic:
    """All flows of a run whose sender or receiver is here."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.ports = traffic.ports(context.spec)
        self._block = traffic.block_bytes(context.spec)
        self._sending = [flow for flow in context.spec.flows if context.here(flow.sender)]
        self._crowd = traffic.crowd(context.spec)
        self._together: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        self._send_buffers: dict[str, int | None] = {}
        self._receive_buffers: dict[str, int | None] = {}

    def prepare(self) -> None:
        """Start every receiving program."""
        for node, flows in self._by_node("receiver").items():
            command = traffic.crowd_receiver((flow, self.ports[flow.name]) for flow in flows)
            self._start_together(node, command, "server")
        for flow in self._context.spec.flows:
            if self._context.here(flow.receiver) and flow.name not in self._crowd:
                command = traffic.server_command(flow, self.ports[flow.name], self._block)
                process = self._context.network.start(flow.receiver, command, self._output(flow, "server"))
                self._servers[flow.name] = end_with_run(self._context.cleanup, process)

    def plan(self) -> None:
        """Plan the start of every sending iperf2, and the reading of its sockets before its end."""
        address = self._context.network.topology.address
        for node, flows in self._by_node("sender").items():
            orders = [(flow, address(flow.receiver), self.ports[flow.name]) for flow in flows]
            command = traffic.crowd_sender(orders, self._context.timeline.origin_ns)
            self._start_together(node, command, "client")
        for flow in self._sending:
            if flow.name not in self._crowd:
                self._context.timeline.at(flow.start_us, partial(self._start_client, flow))
        for flow in self._context.spec.flows:
            if flow.window_bytes or flow.send_window_bytes:
                near_end_us = flow.start_us + flow.duration_us - min(LOOK_US, flow.duration_us // 2)
                self._context.timeline.at(near_end_us, partial(self._read_buffers, flow))
            if flow.transfer_bytes is not None and flow.name in self._servers:
                self._context.timeline.at(flow.start_us + flow.duration_us, partial(self._record_open_transfers, flow))

    def finish(self) -> None:
        """Wait for clients and servers, and for transfers that are still under way."""
        drain_s = self._context.drain_s
        for what, process in self._together:
            finish(process, what, within_s=drain_s)
        for flow in self._context.spec.flows:
            try:
                self._finish(flow, drain_s)
            except GuestError as error:
                if flow.name in self._context.seen.min_rtt_us or flow.name not in self._clients:
                    raise
                raise GuestError(f"no data of {flow.name} arrived ({error})") from error

    def _finish(self, flow: Flow, drain_s: float) -> None:
        if flow.name in self._clients:
            what, expected = f"iperf2 client of flow {flow.name}", traffic.client_status(flow)
            finish(self._clients[flow.name], what, expected, drain_s)
        if flow.name in self._servers:
            if flow.transfer_bytes is not None:
                self._wait_for_last_transfer(flow)
                self._servers[flow.name].terminate()
            finish(self._servers[flow.name], f"iperf2 server of flow {flow.name}", within_s=drain_s)

    def achieved(self) -> dict[str, Any]:
        """Return algorithm, parameters, base RTT and buffer of flows sent here, and buffers of flows received here."""
        seen = self._context.seen
        flows = [
            {
                "flow": flow.name,
                "cca": seen.ccas.get(flow.name),
                "cca_parameters": self._parameters(flow),
                "base_rtt_us": seen.min_rtt_us.get(flow.name),
                "send_buffer_bytes": self._send_buffers.get(flow.name),
            }
            for flow in self._sending
        ]
        return {"flows": flows, "receive_buffers": self._receive_buffers}

    def _by_node(self, end: str) -> dict[str, list[Flow]]:
        """Return the flows that share processes by the node of one end, as far as it is here."""
        found: dict[str, list[Flow]] = {}
        for flow in self._crowd.values():
            if self._context.here(getattr(flow, end)):
                found.setdefault(getattr(flow, end), []).append(flow)
        return found

    def _start_together(self, node: str, command: list[str], end: str) -> None:
        output = self._context.output(f"iperf/all@{node}.{end}.txt")
        process = self._context.network.start_tool(node, command, output)
        self._together.append((f"{end} of all flows at {node}", end_with_run(self._context.cleanup, process)))

    def _start_client(self, flow: Flow) -> None:
        address = self._context.network.topology.address(flow.receiver)
        command = traffic.client_command(flow, address, self.ports[flow.name], self._block)
        network = self._context.network
        # The sender of a flow with a rate belongs to the guest, not to the node's image.
        start = network.start if flow.rate_bps is None else network.start_tool
        process = start(flow.sender, command, self._output(flow, "client"))
        self._clients[flow.name] = end_with_run(self._context.cleanup, process)

    def _read_buffers(self, flow: Flow) -> None:
        """Read the smallest buffers of the flow's sockets; a listening socket has the buffers of future connections."""
        port = self.ports[flow.name]
        if self._context.here(flow.sender):
            with self._context.network.inside(flow.sender):
                sending = [one.send for one in sockets.read_buffers() if one.destination_port == port]
            self._send_buffers[flow.name] = min(sending, default=None)
        if self._context.here(flow.receiver):
            with self._context.network.inside(flow.receiver):
                receiving = [one.receive for one in sockets.read_buffers() if one.source_port == port]
            self._receive_buffers[flow.name] = min(receiving, default=None)

    def _record_open_transfers(self, flow: Flow) -> None:
        """Write the bytes received by the flow's open connections, by the sender's port: later bytes do not count."""
        with self._context.network.inside(flow.receiver), sockets.open_probe() as channel:
            found = [info for info in sockets.read_sockets(channel) if info.source_port == self.ports[flow.name]]
        received = {str(info.destination_port): info.info["bytes_received"] for info in found}
        write_json(self._context.folder / "iperf" / f"{flow.name}.end.json", received)

    def _output(self, flow: Flow, end: str) -> IO[bytes]:
        return self._context.output(f"iperf/{flow.name}.{end}.txt")

    def _wait_for_last_transfer(self, flow: Flow) -> None:
        """Wait for packets under way. Raises GuestError if connections stay open."""
        drain_s = self._context.drain_s
        deadline = time.monotonic() + drain_s
        while self._context.network.has_socket(flow.receiver, self.ports[flow.name], sockets.TCP_ESTABLISHED):
            if time.monotonic() > deadline:
                raise GuestError(f"connections of flow {flow.name} are open {drain_s:g} s after its end")
            time.sleep(REPORT_S)
        time.sleep(REPORT_S)  # iperf2 writes its last report

    def _parameters(self, flow: Flow) -> dict[str, int]:
        """Return the parameters of the CCA as read from the flow's sockets, without its state."""
        names = parameter_names(flow.cca)
        values = self._context.seen.cca_values.get(flow.name, {})
        return {name: value for name, value in values.items() if name in names}


def report(spec: RunSpec, folder: Path) -> None:
    """Write flows.json."""
    write_json(folder / "flows.json", flow_results(spec, folder))


def flow_results(spec: RunSpec, folder: Path) -> list[dict[str, Any]]:
    """Return flows.json from the output of iperf2 at both ends of each flow. Raises ValueError if it is incomplete."""
    results = []
    ports = traffic.ports(spec)
    together = _together(spec, folder)
    for flow in spec.flows:
        output = together.get(ports[flow.name]) or {
            end: (folder / "iperf" / f"{flow.name}.{end}.txt").read_text() for end in ("client", "server")
        }
        if flow.transfer_bytes:
            under_way = json.loads((folder / "iperf" / f"{flow.name}.end.json").read_text())
            amounts = _transferred(flow, output, ports[flow.name], under_way)
        else:
            amounts = _sent(flow, output)
        results.append(report_of("flow", flow) | amounts)
    return results


def _together(spec: RunSpec, folder: Path) -> dict[int, dict[str, str]]:
    """Return the output at both ends of the flows that share processes, by the flow's port."""
    ports = traffic.ports(spec)
    flows = traffic.crowd(spec)
    found = {ports[flow.name]: {"client": "", "server": ""} for flow in flows.values()}
    for end, side, column in (("client", "sender", 4), ("server", "receiver", 2)):
        nodes = {getattr(flow, side) for flow in flows.values()}
        for node in sorted(nodes):
            for line in (folder / "iperf" / f"all@{node}.{end}.txt").read_text().splitlines(keepends=True):
                port = int(line.split(",")[column])
                found[port][end] += line
    return found


def _sent(flow: Flow, output: dict[str, str]) -> dict[str, int]:
    """Return bytes and rates; iperf2's client sends from the start of the connection to the end of its socket."""
    sent, rate = traffic.parse_report(output["client"], flow.streams)
    received, goodput = traffic.parse_report(output["server"], flow.streams)
    amounts = {"bytes_sent": sent, "bytes_received": received, "goodput_bps": goodput}
    if flow.rate_bps is not None:
        # iperf2 counts time from the first byte, so its rate may exceed the given rate.
        amounts["goodput_bps"] = min(goodput, round(8e6 * received / flow.duration_us))
        amounts["bytes_due"] = app_rate.due_bytes(dataclasses.asdict(flow), flow.duration_us)
        amounts["blocked_us"] = traffic.parse_blocked(output["client"])
    return amounts | ({"sending_us": round(8e6 * sent / rate)} if rate else {})


def _transferred(flow: Flow, output: dict[str, str], port: int, under_way: dict[str, int]) -> dict[str, int]:
    """Return the number of complete connections of a flow with transfers, and their rate over the flow's duration.

    ``under_way`` has the bytes that open connections had received at the flow's end, by the sender's port: later bytes
    from buffers do not count.
    """
    sent, ended = (traffic.parse_transfers(output[end], port) for end in ("client", "server"))
    if not ended:
        raise ValueError(f"no data of {flow.name} arrived (iperf2 reported {output['server'].strip()[-300:]!r})")
    received = [min(amount, under_way.get(str(sender), amount)) for sender, amount in ended]
    return {
        "bytes_sent": sum(amount for _, amount in sent),
        "bytes_received": sum(received),
        "goodput_bps": round(8e6 * sum(received) / flow.duration_us),
        "transfers": sum(amount == flow.transfer_bytes for amount in received),
    }
