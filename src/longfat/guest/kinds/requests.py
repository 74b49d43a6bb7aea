# SPDX-License-Identifier: Apache-2.0
"""Requests of a run: a server, users, and the outcome of each request.

A request begins with the size of its response in eight bytes; the rest is padding. Server and users are one program
each, ``serve`` and ``ask``, which wait for all their sockets at once.
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
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from longfat.guest import program
from longfat.guest.files import report_of, write_json
from longfat.guest.processes import end_with_run, finish
from longfat.guest.sockets import TCP_LISTEN
from longfat.guest.sysctls import GuestError
from longfat.spec.runspec import Requests, RunSpec

if TYPE_CHECKING:
    from longfat.guest.run import RunContext

FIRST_PORT = 7001  # the server of the RunSpec's entry k listens on FIRST_PORT + k
SPARE_FILES = 256  # open files of a program in addition to its connections
READY_S = 10.0  # a server listens within this time
SIZE_BYTES = 8  # the wanted size at the start of a request, in network order
CHUNK = bytes(256 << 10)  # sent by one system call at most
# The kernel wakes a user for this many bytes and for the last bytes, not for each segment. The value is less than the
# initial receive buffer (net.ipv4.tcp_rmem: 128 KiB), which the kernel would otherwise enlarge (tcp_set_rcvlowat).
WAKE_BYTES = 32 << 10
MOST_OPEN = 16_000  # connections at a time of requests without users
MILLION = 1_000_000
CCA_BYTES = 16  # TCP_CA_NAME_MAX (net/tcp.h)
COLUMNS = "t_us,requests,user,response_bytes,response_us"
MODULE = "longfat.guest.kinds.requests"
RANDOM_TIMES = "longfat.guest.kinds.arrivals"  # its users do not wait for responses


class Traffic:
    """All requests of a run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.ports = {one.name: FIRST_PORT + k for k, one in enumerate(context.spec.requests)}
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._users: dict[str, subprocess.Popen[bytes]] = {}

    def prepare(self) -> None:
        """Start every server, and wait until it listens."""
        for one in self._context.spec.requests:
            (self._context.folder / "requests").mkdir(exist_ok=True)
            order = {**dataclasses.asdict(one), "port": self.ports[one.name]}
            self._servers[one.name] = self._start(one.sender, MODULE, "serve", order)
        deadline = time.monotonic() + READY_S
        for one in self._context.spec.requests:
            while not self._context.network.has_socket(one.sender, self.ports[one.name], TCP_LISTEN):
                if time.monotonic() > deadline:
                    raise GuestError(f"the server of requests {one.name} does not listen after {READY_S:g} s")
                time.sleep(0.01)

    def plan(self) -> None:
        """Plan the start of the users."""
        for one in self._context.spec.requests:
            self._context.timeline.at(one.start_us, partial(self._start_users, one))

    def finish(self) -> None:
        """Wait for the users, end the servers."""
        for name, process in self._users.items():
            finish(process, f"program of the users of requests {name}", within_s=self._context.drain_s)
        for name, process in self._servers.items():
            process.terminate()
            finish(process, f"server of requests {name}", within_s=self._context.drain_s)

    def achieved(self) -> dict[str, Any]:
        """Return the congestion controls of the servers' connections."""
        folder = self._context.folder
        return {
            "requests": [{"requests": name, "ccas": _output(folder, name, "serve")["ccas"]} for name in self._servers]
        }

    def _start_users(self, one: Requests) -> None:
        order = {
            **dataclasses.asdict(one),
            "port": self.ports[one.name],
            "address": self._context.network.topology.address(one.sender),
            "seed": self._context.spec.seed,
            "origin_ns": self._context.timeline.origin_ns,
        }
        self._users[one.name] = self._start(one.receiver, RANDOM_TIMES if one.every_us else MODULE, "ask", order)

    def _start(self, node: str, module: str, function: str, order: dict[str, Any]) -> subprocess.Popen[bytes]:
        """Start one of the two programs."""
        output = self._context.output(f"requests/{order['name']}.{function}.json")
        command = program.command(module, function, order)
        return end_with_run(self._context.cleanup, self._context.network.start_tool(node, command, output))


def report(spec: RunSpec, folder: Path) -> None:
    """Write requests.json, and responses.csv in the order of requests."""
    reports, rows = [], []
    for one in spec.requests:
        output = _output(folder, one.name, "ask")
        times = [response_us for _, _, _, response_us in output["responses"]]
        reports.append(
            report_of("requests", one)
            | {
                "users": one.users,
                "bytes_received": output["bytes_received"],
                "responses": len(times),
                "unfinished": output["unfinished"],
                "errors": output["errors"],
                "mean_response_us": round(sum(times) / len(times)) if times else None,
            }
        )
        rows += [(t_us, one.name, *rest) for t_us, *rest in output["responses"]]
    write_json(folder / "requests.json", reports)
    with (folder / "responses.csv").open("w") as table:
        print(COLUMNS, file=table)
        for row in sorted(rows):
            print(*row, sep=",", file=table)


def _output(folder: Path, name: str, function: str) -> dict[str, Any]:
    """Return the output of one of the two programs."""
    found: dict[str, Any] = json.loads((folder / "requests" / f"{name}.{function}.json").read_text())
    return found


def response_bytes(order: dict[str, Any], random: Random) -> int:
    """Draw the size of a response: whole bytes, at least one."""
    mean, shape = int(order["response_bytes"]), float(order["shape"])
    if order["sizes"] == "exponential":
        return max(1, round(random.expovariate(1 / mean)))
    if order["sizes"] == "pareto":
        return max(1, round(mean * (shape - 1) / shape * random.paretovariate(shape)))
    if order["sizes"] == "table":
        return max(1, round(at_share(order["table"], random.random() * MILLION)))
    return mean


def at_share(table: list[tuple[int, int]], share_ppm: float) -> float:
    """Return the size that ``share_ppm`` millionths of the responses do not exceed, interpolated linearly."""
    k = bisect_left(table, share_ppm, key=lambda point: point[1])
    if k == 0:
        return table[0][0]
    (low, below), (high, above) = table[k - 1], table[k]
    return low + (high - low) * (share_ppm - below) / (above - below)


def think_s(order: dict[str, Any], random: Random, *, first: bool = False) -> float:
    """Draw the seconds until a user's next request; before the first one, the rest of a time that began earlier."""
    mean_s = float(order["think_us"]) / 1e6
    if order["thinking"] == "exponential" and mean_s:
        return random.expovariate(1 / mean_s)  # memoryless: the rest has the same distribution
    return mean_s * random.random() if first else mean_s


class Ended(Exception):
    """The server is terminated."""


def _end(_signal: int, _frame: object) -> None:
    raise Ended


def allow_connections(order: dict[str, Any]) -> None:
    """Raise the limit of open files to the number of connections at a time, and some more."""
    count = (order["users"] or MOST_OPEN) + SPARE_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


@dataclass
class Answer:
    """A connection of the server: received bytes of the request, its head, and bytes left to send."""

    connection: socket.socket
    came: int = 0
    head: bytes = b""
    left: int = -1


class Server:
    """The listening server of one entry. ``ccas`` are the congestion controls of its connections."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.ccas: set[str] = set()
        self._request_bytes = order["request_bytes"]
        self._answers: dict[int, Answer] = {}
        self._listener = socket.create_server(("", order["port"]), backlog=4096)
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, order["cca"].encode())
        self._listener.setblocking(False)
        self._poll = select.epoll()
        self._poll.register(self._listener, select.EPOLLIN)

    def answer(self, wait_s: float | None = None) -> None:
        """Serve all ready sockets, after waiting at most ``wait_s`` for one."""
        for descriptor, _ in self._poll.poll(wait_s):
            if descriptor == self._listener.fileno():
                self._take_in()
            elif self._is_answered(self._answers[descriptor]):
                self._answers.pop(descriptor).connection.close()

    def close(self) -> None:
        """Close all sockets."""
        self._poll.close()
        for endpoint in (self._listener, *(answer.connection for answer in self._answers.values())):
            endpoint.close()

    def _take_in(self) -> None:
        """Accept all waiting connections."""
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
        """Read or send as much as possible; return whether the connection is finished, for any reason."""
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
            return True  # its user has left
        return True


def serve(order: dict[str, Any]) -> None:
    """Answer requests until SIGTERM, then write the congestion controls of the connections."""
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
    """A request under way: user, start, wanted size, bytes left to send, and received bytes."""

    user: int
    connection: socket.socket
    begin_ns: int
    wanted: int
    to_send: bytes
    came: int = 0


class Crowd:
    """The users of one entry, each with one request at a time."""

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
        """Send requests until the end, which cuts off unfinished requests."""
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
        """Schedule a user's request ``wait_s`` after a moment."""
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
        """Send or read as much as possible."""
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
        """Ask the kernel to wake the program when enough bytes have arrived."""
        enough = min(request.wanted - request.came, WAKE_BYTES)
        request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, enough)

    def _leave(self, request: Request, error: str | None) -> None:
        """Finish a request: its user thinks."""
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
        """Schedule the first requests."""
        for user, random in enumerate(self._randoms):
            self.plan(user, self.begin_ns, think_s(self.order, random, first=True))

    def wanted(self, user: int) -> int:
        """Return the bytes of the user's next response."""
        return response_bytes(self.order, self._randoms[user])

    def go_on(self, user: int, now_ns: int) -> None:
        """Schedule the next request of a user whose request has ended."""
        self.plan(user, now_ns, think_s(self.order, self._randoms[user]))


def ask(order: dict[str, Any]) -> None:
    """Act as the users, then write the outcome of their requests."""
    allow_connections(order)
    json.dump(Crowd(order).run(), sys.stdout)
