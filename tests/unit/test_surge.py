# SPDX-License-Identifier: Apache-2.0
"""The model of web users: its distributions, and what it expects against what its draws give."""

from __future__ import annotations

import math

import pytest

from longfat.guest import surge
from longfat.guest.surge import Sessions, files, user_random
from longfat.study.traffic.web import WEB_MODELS

USERS, SECONDS = 400, 200.0


def test_nine_tenths_of_the_files_are_the_body_and_the_rest_is_the_tail() -> None:
    sizes = files("surge").sizes
    assert sorted(sizes) == list(sizes)
    assert sum(size >= surge.TAIL_BYTES for size in sizes) == round((1 - surge.BODY_SHARE) * surge.FILES)
    median = sizes[surge.FILES // 2]  # above that of the body, as the tail is
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
