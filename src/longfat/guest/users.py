# SPDX-License-Identifier: Apache-2.0
"""A crowd of web users as a program of their node: sessions of the model, each over its own connection.

libcurl (Debian package python3-pycurl) does HTTP. One process serves the crowd: libcurl's multi interface names sockets
and a time to wait for, and epoll waits, for any number of sockets. Reads the order of ``longfat.guest.web``, and writes
a JSON object with the results.
"""

from __future__ import annotations

import heapq
import json
import resource
import select
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BUFFER_BYTES = 64 << 10  # largest read; from 128 KiB on malloc would map and unmap it each time
# Wait between the first data and the read: in virtual time the program would be woken for each segment. TCP
# acknowledges meanwhile.
GATHER_S = 0.002
HTTP_OK = 200


@dataclass
class User:
    """One user: a libcurl handle for all requests, and the session."""

    number: int
    handle: Any
    requests: Iterator[tuple[float, int]]
    file: int = 0


@dataclass
class Tally:
    """Results of the users. ``errors`` counts by libcurl's names, or ``http_<status>``."""

    bytes_received: int = 0
    replies: int = 0
    unfinished: int = 0
    reply_s: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """Return the data of web.json."""
        return {
            "bytes_received": self.bytes_received,
            "replies": self.replies,
            "unfinished": self.unfinished,
            "mean_reply_us": round(1e6 * self.reply_s / self.replies) if self.replies else None,
            "errors": dict(sorted(self.errors.items())),
        }


class Crowd:
    """All users of a web traffic. ``curl`` is the module pycurl.

    ``users`` has a session for each; ``end_s`` is a time of CLOCK_MONOTONIC.
    """

    def __init__(self, curl: Any, server: str, users: list[Iterator[tuple[float, int]]], end_s: float) -> None:
        self._curl = curl
        self._address, self._port = server.split(":")
        self._end_s = end_s
        self._users = [User(number, self._handle(number), requests) for number, requests in enumerate(users)]
        self._asking: dict[Any, User] = {}
        self._due: list[tuple[float, int]] = []
        self._tally = Tally()
        self._poll = select.epoll()
        self._watched: set[int] = set()
        self._curl_due_s: float | None = None
        self._multi = curl.CurlMulti()
        self._multi.setopt(curl.M_MAXCONNECTS, len(users))
        self._multi.setopt(curl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(curl.M_TIMERFUNCTION, self._set_timer)

    def run(self, begin_s: float) -> Tally:
        """Run the users from ``begin_s`` to the end, which cuts off unfinished transfers."""
        for user in self._users:
            self._plan(user, begin_s)
        while (now_s := time.monotonic()) < self._end_s:
            while self._due and self._due[0][0] <= now_s:
                self._ask(self._users[heapq.heappop(self._due)[1]])
            if self._curl_due_s is not None and self._curl_due_s <= now_s:
                self._curl_due_s = None
                self._multi.socket_action(self._curl.SOCKET_TIMEOUT, 0)
            self._take_replies(now_s)
            self._wait(now_s)
        self._take_replies(self._end_s)
        for handle in self._asking:
            self._tally.unfinished += 1
            self._tally.bytes_received += int(handle.getinfo(self._curl.SIZE_DOWNLOAD))
        return self._tally

    def _wait(self, now_s: float) -> None:
        """Wait for a socket, for libcurl's time or for a user's time, and let libcurl handle its sockets."""
        curl = self._curl
        times_s = [self._end_s, *(due_s for due_s, _ in self._due[:1])]
        times_s += [] if self._curl_due_s is None else [self._curl_due_s]
        if not self._poll.poll(max(0.0, min(times_s) - now_s)):
            return
        time.sleep(GATHER_S)
        for descriptor, events in self._poll.poll(0):
            action = curl.CSELECT_IN if events & select.EPOLLIN else 0
            action |= curl.CSELECT_OUT if events & select.EPOLLOUT else 0
            action |= curl.CSELECT_ERR if events & (select.EPOLLERR | select.EPOLLHUP) else 0
            self._multi.socket_action(descriptor, action)

    def _handle(self, number: int) -> Any:
        """Return a handle that discards the received data.

        libcurl searches all connections to a host name before it uses one, so each user has its own name for the
        server.
        """
        curl = self._curl
        handle = curl.Curl()
        handle.setopt(curl.RESOLVE, [f"user{number}:{self._port}:{self._address}"])
        handle.setopt(curl.DNS_CACHE_TIMEOUT, -1)
        handle.setopt(curl.PROXY, "")
        handle.setopt(curl.WRITEFUNCTION, len)
        handle.setopt(curl.BUFFERSIZE, BUFFER_BYTES)
        handle.setopt(curl.NOSIGNAL, 1)
        return handle

    def _plan(self, user: User, from_s: float) -> None:
        """Plan the user's next request."""
        wait_s, user.file = next(user.requests)
        heapq.heappush(self._due, (from_s + wait_s, user.number))

    def _ask(self, user: User) -> None:
        """Send the user's request."""
        user.handle.setopt(self._curl.URL, f"http://user{user.number}:{self._port}/{user.file}")
        self._asking[user.handle] = user
        self._multi.add_handle(user.handle)

    def _take_replies(self, now_s: float) -> None:
        """Count finished and failed transfers, and plan the next requests of their users."""
        waiting = 1
        while waiting:
            waiting, done, failed = self._multi.info_read()
            for handle in done:
                status = handle.getinfo(self._curl.RESPONSE_CODE)
                self._take(handle, now_s, None if status == HTTP_OK else f"http_{status}")
            for handle, number, _ in failed:
                self._take(handle, now_s, error_name(self._curl, number))

    def _take(self, handle: Any, now_s: float, error: str | None) -> None:
        self._tally.bytes_received += int(handle.getinfo(self._curl.SIZE_DOWNLOAD))
        if error:
            self._tally.errors[error] += 1
        else:
            self._tally.replies += 1
            self._tally.reply_s += handle.getinfo(self._curl.TOTAL_TIME)
        self._multi.remove_handle(handle)
        self._plan(self._asking.pop(handle), now_s)

    # libcurl calls these two functions: to watch a socket, and to set the time of its next call.

    def _watch(self, what: int, descriptor: int, _multi: Any, _data: Any) -> None:
        curl = self._curl
        if what == curl.POLL_REMOVE:
            self._poll.unregister(descriptor)
            self._watched.discard(descriptor)
            return
        events = select.EPOLLIN if what in (curl.POLL_IN, curl.POLL_INOUT) else 0
        events |= select.EPOLLOUT if what in (curl.POLL_OUT, curl.POLL_INOUT) else 0
        if descriptor in self._watched:
            self._poll.modify(descriptor, events)
        else:
            self._poll.register(descriptor, events)
            self._watched.add(descriptor)

    def _set_timer(self, milliseconds: int) -> None:
        self._curl_due_s = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000


def error_name(curl: Any, number: int) -> str:
    """Return libcurl's name of an error: ``couldnt_connect`` for 7."""
    names = sorted(name for name in dir(curl) if name.startswith("E_") and getattr(curl, name) == number)
    return names[0].removeprefix("E_").lower() if names else f"curl_{number}"


def main(order: dict[str, Any]) -> None:
    """Execute the order, and write the results to standard output."""
    # Imported here: the interpreter knows the folders of packages only after the last lines of this module.
    import pycurl

    from longfat.guest.surge import Sessions, user_random

    resource.setrlimit(resource.RLIMIT_NOFILE, (order["open_files"], order["open_files"]))
    web = order["web"]
    sessions = Sessions(web["model"], web["off_ppm"] / 1e6)
    users = [sessions.under_way(user_random(order["seed"], web["name"], k)) for k in range(web["users"])]
    crowd = Crowd(pycurl, order["server"], users, order["end_ns"] / 1e9)
    json.dump(crowd.run(order["begin_ns"] / 1e9).to_dict(), sys.stdout)


if __name__ == "__main__":
    # The interpreter starts isolated and without site.
    sys.path[:] = [
        str(Path(__file__).resolve().parents[2]),
        "/usr/lib/python3.11",
        "/usr/lib/python3.11/lib-dynload",
        "/usr/lib/python3/dist-packages",
    ]
    main(json.loads(Path(sys.argv[1]).read_text()))
