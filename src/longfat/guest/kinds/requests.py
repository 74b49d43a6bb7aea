# SPDX-License-Identifier: Apache-2.0
"""Requests of one run while it happens: a server, users, and what became of each request.

A request begins with the size of the response that it wants, as eight bytes; what follows says nothing. Server and
users are one program each, ``serve`` and ``ask``, which wait for all their sockets at once.
"""

from __future__ import annotations

import dataclasses
import errno
import heapq
import json
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from longfat.guest import program
from longfat.guest.files import write_json
from longfat.guest.processes import end_with_run, finish
from longfat.guest.sockets import TCP_LISTEN
from longfat.guest.sysctls import LaboratoryError
from longfat.runspec import RunSpec

if TYPE_CHECKING:
    from longfat.guest.run import RunContext

FIRST_PORT = 7001  # entry k of the RunSpec's requests is served at FIRST_PORT + k
SPARE_FILES = 256  # open files of a program besides its connections
READY_S = 10.0  # a server listens by then
SIZE_BYTES = 8  # the wanted size at the head of a request, in network order
CHUNK = bytes(256 << 10)  # one system call sends so much at most
# A user is woken for so many bytes and for the last ones, in place of each segment. It is less than a receive buffer
# begins with (net.ipv4.tcp_rmem: 128 KiB), which the kernel would else make larger (tcp_set_rcvlowat).
WAKE_BYTES = 32 << 10
CCA_BYTES = 16  # TCP_CA_NAME_MAX (net/tcp.h)
COLUMNS = "t_us,requests,user,response_bytes,response_us"
MODULE = "longfat.guest.kinds.requests"


class Traffic:
    """All requests of a run; other kinds that ask a server have classes of their own, with what differs.

    ``kind`` is their name in the RunSpec, ``module`` has the function ``ask``, their program at the receiver. The
    server gets ``served`` besides the entry.
    """

    kind = "requests"
    module = MODULE
    first_port = FIRST_PORT
    served: ClassVar[dict[str, Any]] = {}

    def __init__(self, stage: RunContext) -> None:
        self.stage = stage
        self.entries = getattr(stage.spec, self.kind)
        self.ports = {one.name: self.first_port + k for k, one in enumerate(self.entries)}
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._users: dict[str, subprocess.Popen[bytes]] = {}

    def prepare(self) -> None:
        """Start every server, and wait until it listens."""
        for one in self.entries:
            (self.stage.folder / self.kind).mkdir(exist_ok=True)
            order = {**dataclasses.asdict(one), "port": self.ports[one.name], **self.served}
            self._servers[one.name] = self._start(one.sender, MODULE, "serve", order)
        deadline = time.monotonic() + READY_S
        for one in self.entries:
            while not self.stage.network.has_socket(one.sender, self.ports[one.name], TCP_LISTEN):
                if time.monotonic() > deadline:
                    raise LaboratoryError(f"the server of {one.what} {one.name} does not listen after {READY_S:g} s")
                time.sleep(0.01)

    def plan(self) -> None:
        """Put the start of the users on the time line."""
        for one in self.entries:
            self.stage.timeline.at(one.start_us, partial(self.start_users, one, {"port": self.ports[one.name]}))

    def finish(self) -> None:
        """Wait for the users, end the servers."""
        for name, process in self._users.items():
            finish(process, f"program of the users of {self.kind} {name}", within_s=self.stage.drain_s)
        for name, process in self._servers.items():
            process.terminate()
            finish(process, f"server of {self.kind} {name}", within_s=self.stage.drain_s)

    def achieved(self) -> dict[str, Any]:
        """The congestion controls that the servers' connections had."""
        return {
            self.kind: [
                {self.kind: name, "ccas": said(self.stage.folder, self.kind, f"{name}.serve")["ccas"]}
                for name in self._servers
            ]
        }

    def start_users(self, one: Any, order: dict[str, Any]) -> None:
        """Start the program at the receiver of an entry."""
        address = self.stage.network.topology.address(one.sender)
        when = {"address": address, "seed": self.stage.spec.seed, "origin_ns": self.stage.timeline.origin_ns}
        self._users[one.name] = self._start(
            one.receiver, self.module, "ask", {**dataclasses.asdict(one), **order, **when}
        )

    def _start(self, node: str, module: str, function: str, order: dict[str, Any]) -> subprocess.Popen[bytes]:
        """Start one of the two programs."""
        output = self.stage.output(f"{self.kind}/{order['name']}.{function}.json")
        command = program.command(module, function, order)
        return end_with_run(self.stage.cleanup, self.stage.network.start_tool(node, command, output))


def report(spec: RunSpec, folder: Path) -> None:
    """Write requests.json, and responses.csv in the order in which they were asked for."""
    reports, rows = [], []
    for one in spec.requests:
        told = said(folder, "requests", f"{one.name}.ask")
        times = [response_us for _, _, _, response_us in told["responses"]]
        reports.append(
            {
                "requests": one.name,
                "sender": one.sender,
                "receiver": one.receiver,
                "cca": one.cca,
                "users": one.users,
                "start_us": one.start_us,
                "end_us": one.start_us + one.duration_us,
                "bytes_received": told["bytes_received"],
                "responses": len(times),
                "unfinished": told["unfinished"],
                "errors": told["errors"],
                "mean_response_us": round(sum(times) / len(times)) if times else None,
            }
        )
        rows += [(t_us, one.name, *rest) for t_us, *rest in told["responses"]]
    write_json(folder / "requests.json", reports)
    with (folder / "responses.csv").open("w") as table:
        print(COLUMNS, file=table)
        for row in sorted(rows):
            print(*row, sep=",", file=table)


def said(folder: Path, kind: str, program_name: str) -> dict[str, Any]:
    """What a program of a kind wrote."""
    found: dict[str, Any] = json.loads((folder / kind / f"{program_name}.json").read_text())
    return found


def response_bytes(order: dict[str, Any], random: Random) -> int:
    """The size of a response: whole bytes, at least one."""
    mean, shape = int(order["response_bytes"]), float(order["shape"])
    if order["sizes"] == "exponential":
        return max(1, round(random.expovariate(1 / mean)))
    if order["sizes"] == "pareto":
        return max(1, round(mean * (shape - 1) / shape * random.paretovariate(shape)))
    return mean


def think_s(order: dict[str, Any], random: Random, *, first: bool = False) -> float:
    """Seconds until a user's next request; before its first one the rest of a time that had begun earlier."""
    mean_s = float(order["think_us"]) / 1e6
    if order["thinking"] == "exponential" and mean_s:
        return random.expovariate(1 / mean_s)  # has no memory: the rest is like the whole
    return mean_s * random.random() if first else mean_s


class Ended(Exception):
    """The server is asked to end."""


def _end(_signal: int, _frame: object) -> None:
    raise Ended


def allow_connections(order: dict[str, Any]) -> None:
    """Let the program have as many open files as there are users, and some more."""
    count = order["users"] + SPARE_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


@dataclass
class Answer:
    """A connection of the server: bytes of the request that have come, its head, and bytes that are still to go."""

    connection: socket.socket
    came: int = 0
    head: bytes = b""
    left: int = -1


class Server:
    """The server of one entry, listening. ``ccas`` are the congestion controls that its connections had.

    Where the order says ``keep`` a connection may ask again when it has been answered.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self.ccas: set[str] = set()
        self._request_bytes = order["request_bytes"]
        self._keeps = order.get("keep", False)
        self._answers: dict[int, Answer] = {}
        self._listener = socket.create_server(("", order["port"]), backlog=4096)
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, order["cca"].encode())
        self._listener.setblocking(False)
        self._poll = select.epoll()
        self._poll.register(self._listener, select.EPOLLIN)

    def answer(self, wait_s: float | None = None) -> None:
        """Do what can be done, after waiting for it so long at most."""
        for descriptor, _ in self._poll.poll(wait_s):
            if descriptor == self._listener.fileno():
                self._take_in()
            elif self._is_answered(answer := self._answers[descriptor]):
                if self._keeps and answer.left == 0:
                    self._answers[descriptor] = Answer(answer.connection)
                    self._poll.modify(descriptor, select.EPOLLIN)
                else:
                    self._answers.pop(descriptor).connection.close()

    def close(self) -> None:
        """Listen no longer."""
        self._poll.close()
        for endpoint in (self._listener, *(answer.connection for answer in self._answers.values())):
            endpoint.close()

    def _take_in(self) -> None:
        """Accept what waits."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            connection.setblocking(False)
            name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CCA_BYTES)
            self.ccas.add(name.rstrip(b"\0").decode())
            self._answers[connection.fileno()] = Answer(connection)
            self._poll.register(connection, select.EPOLLIN)

    def _is_answered(self, answer: Answer) -> bool:
        """Read or send what can be; whether the connection is done with, for whatever reason."""
        try:
            while answer.came < self._request_bytes:
                data = answer.connection.recv(self._request_bytes - answer.came)
                if not data:
                    return True
                answer.came += len(data)
                answer.head += data[: SIZE_BYTES - len(answer.head)]
            if answer.left < 0:
                answer.left = int.from_bytes(answer.head, "big")
                self._poll.modify(answer.connection, select.EPOLLOUT)
            while answer.left:
                answer.left -= answer.connection.send(memoryview(CHUNK)[: answer.left])
        except BlockingIOError:
            return False
        except OSError:
            answer.left = -1  # its user has gone
        return True


def serve(order: dict[str, Any]) -> None:
    """Answer requests until SIGTERM, then write which congestion controls the connections had."""
    allow_connections(order)
    signal.signal(signal.SIGTERM, _end)
    server = Server(order)
    try:
        while True:
            server.answer()
    except Ended:
        json.dump({"ccas": sorted(server.ccas)}, sys.stdout)


@dataclass
class Request:
    """A request under way: its user, when it began, the size that it wants, what of it is to be sent and has come."""

    user: int
    connection: socket.socket
    begin_ns: int
    wanted: int
    to_send: bytes
    came: int = 0


class Crowd:
    """The users of one entry."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.begin_ns = order["origin_ns"] + 1000 * order["start_us"]
        self._end_ns = self.begin_ns + 1000 * order["duration_us"]
        self._randoms = [Random(f"{order['seed']} {order['name']} {user}") for user in range(order["users"])]
        self._due: list[tuple[int, int]] = []
        self._under_way: dict[int, Request] = {}
        self._poll = select.epoll()
        self._buffer = bytearray(len(CHUNK))
        self._bytes = 0
        self._responses: list[tuple[int, int, int, int]] = []
        self._errors: Counter[str] = Counter()

    def run(self) -> dict[str, Any]:
        """Ask until the end; what is under way then is cut off."""
        self.begin()
        while (now_ns := time.monotonic_ns()) < self._end_ns:
            while self._due and self._due[0][0] <= now_ns:
                self.ask(heapq.heappop(self._due)[1])
            next_ns = min([self._end_ns, *(due_ns for due_ns, _ in self._due[:1])])
            for descriptor, _ in self._poll.poll(max(0.0, (next_ns - time.monotonic_ns()) / 1e9)):
                self._advance(self._under_way[descriptor])
        return {
            "bytes_received": self._bytes,
            "responses": self._responses,
            "unfinished": len(self._under_way),
            "errors": dict(sorted(self._errors.items())),
        }

    def plan(self, user: int, from_ns: int, wait_s: float) -> None:
        """Let a user ask so much later than a moment."""
        heapq.heappush(self._due, (from_ns + round(1e9 * wait_s), user))

    def ask(self, user: int) -> None:
        """Begin a connection."""
        wanted = self.wanted(user)
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        head = wanted.to_bytes(SIZE_BYTES, "big")
        padded = head + bytes(self.order["request_bytes"] - SIZE_BYTES)
        request = Request(user, connection, time.monotonic_ns(), wanted, padded)
        self._under_way[connection.fileno()] = request
        self._poll.register(connection, select.EPOLLOUT)
        status = connection.connect_ex((self.order["address"], self.order["port"]))
        if status not in (0, errno.EINPROGRESS):
            self._leave(request, errno.errorcode[status])

    def _advance(self, request: Request) -> None:
        """Send or read what can be."""
        connection = request.connection
        try:
            if request.to_send:
                request.to_send = request.to_send[connection.send(request.to_send) :]
                if not request.to_send:
                    self._expect(request)
                    self._poll.modify(connection, select.EPOLLIN)
                return
            while request.came < request.wanted:
                count = connection.recv_into(self._buffer)
                if not count:
                    return self._leave(request, "cut_short")
                request.came += count
                self._bytes += count
            self._leave(request, None)
        except BlockingIOError:
            self._expect(request)
        except OSError as error:
            self._leave(request, errno.errorcode.get(error.errno or 0, "error"))

    def _expect(self, request: Request) -> None:
        """Be woken when enough has come."""
        enough = min(request.wanted - request.came, WAKE_BYTES)
        request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, enough)

    def _leave(self, request: Request, error: str | None) -> None:
        """The request is done with: its user thinks."""
        now_ns = time.monotonic_ns()
        if error:
            self._errors[error.lower()] += 1
        else:
            begin_us = (request.begin_ns - self.order["origin_ns"]) // 1000
            taken_us = (now_ns - request.begin_ns) // 1000
            self._responses.append((begin_us, request.user, request.wanted, taken_us))
        del self._under_way[request.connection.fileno()]
        request.connection.close()
        self.go_on(request.user, now_ns)

    def begin(self) -> None:
        """Plan what is asked for first."""
        for user, random in enumerate(self._randoms):
            self.plan(user, self.begin_ns, think_s(self.order, random, first=True))

    def wanted(self, user: int) -> int:
        """Bytes that the user asks for now."""
        return response_bytes(self.order, self._randoms[user])

    def go_on(self, user: int, now_ns: int) -> None:
        """Plan what a user asks for whose request has ended."""
        self.plan(user, now_ns, think_s(self.order, self._randoms[user]))


def ask(order: dict[str, Any]) -> None:
    """Be the users, then write what became of their requests."""
    allow_connections(order)
    json.dump(Crowd(order).run(), sys.stdout)
