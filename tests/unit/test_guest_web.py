# SPDX-License-Identifier: Apache-2.0
"""Web traffic: the server's files, the users' order, and the counts that the users make of libcurl's answers."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from longfat.guest import surge
from longfat.guest.users import Crowd
from longfat.guest.web import make_files


def test_the_files_have_the_model_s_sizes_and_take_no_space(tmp_path: Path) -> None:
    make_files(tmp_path / "web")
    sizes = surge.files("surge").sizes
    for number in (0, 1000, 1999):
        facts = (tmp_path / "web" / str(number)).stat()
        assert (facts.st_size, facts.st_blocks) == (sizes[number], 0)


class StubMulti:
    """libcurl's multi interface, whose replies take as many looks as their handles say; file 9 is an error."""

    def __init__(self) -> None:
        self.waiting: list[StubHandle] = []

    def setopt(self, option: str, value: Any) -> None:
        pass

    def add_handle(self, handle: StubHandle) -> None:
        self.waiting.append(handle)

    def remove_handle(self, handle: StubHandle) -> None:
        pass

    def info_read(self) -> tuple[int, list[StubHandle], list[tuple[StubHandle, int, str]]]:
        for handle in self.waiting:
            handle.looks -= 1
        done = [handle for handle in self.waiting if not handle.looks]
        self.waiting = [handle for handle in self.waiting if handle.looks]
        failed = [(handle, 56, "reset") for handle in done if handle.file == "9"]
        return 0, [handle for handle in done if handle.file != "9"], failed


class StubHandle:
    """A handle that gets 404 for file 8 and 1000 bytes in 50 ms for any other; ``files`` lists requests by host."""

    files: ClassVar[dict[str, list[str]]] = {}
    file, slow_host, looks = "", "", 1

    def setopt(self, option: str, value: Any) -> None:
        if option == "URL":
            host = value.removeprefix("http://").partition(":")[0]
            self.file = value.rpartition("/")[2]
            self.files.setdefault(host, []).append(self.file)
            self.looks = 7 if host == self.slow_host else 1

    def getinfo(self, fact: str) -> float:
        status = 404 if self.file == "8" else 200
        return {"RESPONSE_CODE": status, "SIZE_DOWNLOAD": 1000.0, "TOTAL_TIME": 0.05}[fact]


class StubCurl:
    """The module pycurl, as far as a crowd uses it."""

    E_RECV_ERROR = 56
    CurlMulti, Curl = StubMulti, StubHandle

    def __getattr__(self, name: str) -> str:
        return name


def crowd_of(*sessions: list[tuple[float, int]]) -> dict[str, Any]:
    rest = itertools.repeat((3600.0, 0))
    now_s = time.monotonic()
    crowd = Crowd(StubCurl(), "10.0.0.1:8001", [itertools.chain(one, rest) for one in sessions], now_s + 0.05)
    return crowd.run(now_s).to_dict()


def test_replies_are_counted_with_their_bytes_and_mean_time_and_errors_by_kind() -> None:
    found = crowd_of([(0.0, 1), (0.0, 2)], [(0.01, 3)])
    assert found == {"bytes_received": 3000, "replies": 3, "unfinished": 0, "mean_reply_us": 50_000, "errors": {}}
    found = crowd_of([(0.0, 8), (0.0, 9), (0.0, 1)])
    assert (found["errors"], found["replies"]) == ({"http_404": 1, "recv_error": 1}, 1)


class Clock:
    """A clock in the place of the module time and of epoll: each wait takes a millisecond."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def poll(self, timeout_s: float) -> list[tuple[int, int]]:
        self.now_s += 0.001
        return []


def test_what_a_user_asks_for_does_not_depend_on_how_fast_any_user_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(slow_host: str) -> dict[str, list[str]]:
        clock = Clock()
        monkeypatch.setattr("longfat.guest.users.time", clock)
        monkeypatch.setattr(StubHandle, "files", {})
        monkeypatch.setattr(StubHandle, "slow_host", slow_host)
        model = surge.Sessions("surge", 1e-6)
        sessions = [model.session(surge.user_random(7, "surfers", number)) for number in range(3)]
        crowd = Crowd(StubCurl(), "10.0.0.1:8001", sessions, 0.1)
        monkeypatch.setattr(crowd, "_poll", clock)
        crowd.run(0.0)
        return StubHandle.files

    even, uneven = asked(""), asked("user0")
    assert 5 <= len(uneven["user0"]) < len(even["user0"]) / 3
    assert uneven["user0"] == even["user0"][: len(uneven["user0"])]
    assert (uneven["user1"], uneven["user2"]) == (even["user1"], even["user2"])
