# SPDX-License-Identifier: Apache-2.0
"""Web traffic: the model of its users, the server's files, the users' order, and their counts of libcurl's answers."""

from __future__ import annotations

import itertools
import math
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from longfat.guest import surge
from longfat.guest.surge import Sessions, files, user_random
from longfat.guest.users import Crowd
from longfat.guest.web import make_files
from longfat.study.traffic.web import WEB_MODELS


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


USERS, SECONDS = 400, 200.0


def test_nine_tenths_of_the_files_are_the_body_and_the_rest_is_the_tail() -> None:
    sizes = files("surge").sizes
    assert sorted(sizes) == list(sizes)
    assert sum(size >= surge.TAIL_BYTES for size in sizes) == round((1 - surge.BODY_SHARE) * surge.FILES)
    median = sizes[surge.FILES // 2]  # above the body's median, as the tail is
    assert median == pytest.approx(math.exp(surge.BODY_MU), rel=0.1)


@pytest.mark.parametrize("size", [10_000, 30_000, 100_000])
def test_popularity_gives_requests_the_published_sizes(size: int) -> None:
    found = files("surge")
    above = math.fsum(share for own, share in zip(found.sizes, found.shares, strict=True) if own > size)
    published = (surge.REQUEST_BYTES / size) ** surge.REQUEST_SHAPE
    assert above == pytest.approx(published, rel=0.5, abs=0.001)


@pytest.mark.parametrize("model", sorted(WEB_MODELS))
def test_the_draws_ask_for_what_the_model_expects(model: str) -> None:
    """By Monte Carlo, of users whose transfers take no time."""
    sessions, total, count = Sessions(model, 1.0), 0, 0
    for number in range(USERS):
        t_s = 0.0
        for wait_s, file in sessions.under_way(user_random(1, "web", number)):
            t_s += wait_s
            if t_s >= SECONDS:
                break
            total, count = total + sessions.files.sizes[file], count + 1
    requests = (1 + surge.mean_embedded()) / surge.mean_off_s() * USERS * SECONDS
    assert count == pytest.approx(requests, rel=0.05)
    # Sizes of a heavy tail: 18 000 requests have a standard error of 6 % (surge_files) to 15 % (surge).
    assert total == pytest.approx(requests * files(model).mean_request_bytes, rel=0.3)


@pytest.mark.parametrize("model", sorted(WEB_MODELS))
def test_the_catalogue_states_what_the_model_expects(model: str) -> None:
    requests_per_s = (1 + surge.mean_embedded()) / surge.mean_off_s()
    assert WEB_MODELS[model].requests_per_s == pytest.approx(requests_per_s, rel=0.01)
    assert WEB_MODELS[model].bytes_per_s == pytest.approx(requests_per_s * files(model).mean_request_bytes, rel=0.01)


def test_a_user_draws_the_same_requests_however_long_the_others_and_the_waits_are() -> None:
    def begun(off: float, number: int) -> list[tuple[float, int]]:
        session = Sessions("surge", off).session(user_random(1, "web", number))
        return [next(session) for _ in range(50)]

    normal, hurried = begun(1.0, 3), begun(0.5, 3)
    assert normal == begun(1.0, 3) != begun(1.0, 4)
    assert [file for _, file in normal] == [file for _, file in hurried]
    assert [wait_s for wait_s, _ in hurried] == pytest.approx([wait_s / 2 for wait_s, _ in normal])
