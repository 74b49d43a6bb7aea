# SPDX-License-Identifier: Apache-2.0
"""The model of web users: its distributions, and what it expects against what its draws give."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import pytest

from longfat.guest import surge
from longfat.guest.surge import Sessions, files, user_random
from longfat.study.catalog.web import WEB_MODELS

USERS, SECONDS = 400, 200.0
PUBLISHED_BYTES_PER_S = 65e9 / 1200 / 4200  # kelly-2003, slide 11: 65 GB in 1200 s for 4200 users


def asked(model: str, off: float = 1.0) -> tuple[float, float]:
    """Bytes and requests per second and user when a transfer takes no time, by Monte Carlo."""
    sessions = Sessions(model, off)
    total = count = 0
    for number in range(USERS):
        t_s = 0.0
        for wait_s, file in sessions.under_way(user_random(1, "web", number)):
            t_s += wait_s
            if t_s >= SECONDS:
                break
            total, count = total + sessions.files.sizes[file], count + 1
    return total / USERS / SECONDS, count / USERS / SECONDS


def test_the_model_s_names_are_those_of_the_catalogue() -> None:
    for name in WEB_MODELS:
        assert len(files(name).sizes) == surge.FILES
    with pytest.raises(ValueError, match="no web model 'surf'"):
        files("surf")


def test_nine_tenths_of_the_files_are_the_body_and_the_rest_is_the_tail() -> None:
    sizes = files("surge").sizes
    assert sorted(sizes) == list(sizes)
    assert sum(size >= surge.TAIL_BYTES for size in sizes) == round((1 - surge.BODY_SHARE) * surge.FILES)
    median = sizes[surge.FILES // 2]  # above that of the body, as the tail is
    assert median == pytest.approx(math.exp(surge.BODY_MU), rel=0.1)


def test_the_tail_falls_as_a_pareto_distribution_does() -> None:
    tail = [size for size in files("surge").sizes if size >= surge.TAIL_BYTES]
    doubled = sum(size >= 2 * surge.TAIL_BYTES for size in tail) / len(tail)
    assert doubled == pytest.approx(2**-surge.TAIL_SHAPE, abs=0.01)


@pytest.mark.parametrize("model", sorted(WEB_MODELS))
def test_all_requests_go_to_some_file(model: str) -> None:
    assert math.fsum(files(model).shares) == pytest.approx(1)


def test_popularity_follows_zipf_s_law() -> None:
    shares = sorted(files("surge").shares, reverse=True)
    assert shares[0] / shares[9] == pytest.approx(10)
    assert shares[0] / shares[999] == pytest.approx(1000)


@pytest.mark.parametrize("size", [10_000, 30_000, 100_000, 1_000_000])
def test_popularity_gives_requests_the_published_sizes(size: int) -> None:
    found = files("surge")
    above = math.fsum(share for own, share in zip(found.sizes, found.shares, strict=True) if own > size)
    published = (surge.REQUEST_BYTES / size) ** surge.REQUEST_SHAPE
    assert above == pytest.approx(published, rel=0.5, abs=0.001)


def test_a_page_has_an_embedded_file_or_more() -> None:
    session = Sessions("surge", 1.0).session(Random(1))
    waits = [wait_s for wait_s, _ in (next(session) for _ in range(3))]
    assert waits[0] >= surge.INACTIVE_LEAST_S
    drawn = [int(surge.pareto(1, surge.EMBEDDED_SHAPE, k / 100_000)) for k in range(100_000)]
    assert min(drawn) == 1
    assert sum(drawn) / len(drawn) == pytest.approx(surge.mean_embedded(), rel=0.01)


def test_times_are_drawn_by_the_inverse_of_their_distributions() -> None:
    quantile = 1 - math.exp(-1)
    assert surge.weibull(surge.ACTIVE_SCALE_S, surge.ACTIVE_SHAPE, quantile) == pytest.approx(surge.ACTIVE_SCALE_S)
    assert surge.pareto(2.0, 1.5, 0.0) == 2.0
    assert surge.pareto(2.0, 1.5, 1 - 0.25**1.5) == pytest.approx(8.0)


@pytest.mark.parametrize("model", sorted(WEB_MODELS))
def test_the_draws_ask_for_what_the_model_expects(model: str) -> None:
    requests = 1 + surge.mean_embedded()
    expected = requests * files(model).mean_request_bytes / surge.mean_off_s()
    bytes_per_s, requests_per_s = asked(model)
    assert requests_per_s == pytest.approx(requests / surge.mean_off_s(), rel=0.05)
    # Sizes of a heavy tail: 18 000 requests have a standard error of 6 % (surge_files) to 15 % (surge).
    assert bytes_per_s == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("model", sorted(WEB_MODELS))
def test_the_catalogue_states_what_the_model_expects(model: str) -> None:
    requests_per_s = (1 + surge.mean_embedded()) / surge.mean_off_s()
    assert WEB_MODELS[model].requests_per_s == pytest.approx(requests_per_s, rel=0.01)
    assert WEB_MODELS[model].bytes_per_s == pytest.approx(requests_per_s * files(model).mean_request_bytes, rel=0.01)


def test_the_published_volume_is_five_times_that_of_the_published_request_sizes() -> None:
    assert PUBLISHED_BYTES_PER_S / WEB_MODELS["surge"].bytes_per_s == pytest.approx(4.8, abs=0.1)


def test_the_published_volume_is_what_users_of_files_ask_for_less_the_time_of_transfers() -> None:
    asked_for = WEB_MODELS["surge_files"].bytes_per_s
    assert asked_for / PUBLISHED_BYTES_PER_S == pytest.approx(1.16, abs=0.01)
    # A user waits for each reply: so long on average that the published volume comes out.
    replies_s = surge.mean_off_s() * (asked_for / PUBLISHED_BYTES_PER_S - 1) / (1 + surge.mean_embedded())
    assert replies_s == pytest.approx(0.70, abs=0.01)


def test_longer_off_times_ask_for_less() -> None:
    assert asked("surge", off=2.0)[1] == pytest.approx(asked("surge")[1] / 2, rel=0.1)


def test_the_same_seed_gives_the_same_session_and_another_user_another() -> None:
    sessions = Sessions("surge", 1.0)
    first, again, other = (sessions.under_way(user_random(1, "web", number)) for number in (0, 0, 1))
    begun = [next(first) for _ in range(20)]
    assert begun == [next(again) for _ in range(20)]
    assert begun != [next(other) for _ in range(20)]


def test_a_user_draws_the_same_requests_however_long_the_others_and_the_waits_are() -> None:
    def begun(off: float, number: int) -> list[tuple[float, int]]:
        session = Sessions("surge", off).session(user_random(1, "web", number))
        return [next(session) for _ in range(50)]

    normal, hurried = begun(1.0, 3), begun(0.5, 3)
    assert [file for _, file in normal] == [file for _, file in hurried]
    assert [wait_s for wait_s, _ in hurried] == pytest.approx([wait_s / 2 for wait_s, _ in normal])


def test_users_are_not_all_at_the_start_of_their_off_time_when_a_run_begins() -> None:
    sessions = Sessions("surge", 1.0)
    first_waits = sorted(next(sessions.under_way(user_random(1, "web", number)))[0] for number in range(USERS))
    assert min(first_waits) >= 0
    within = [sum(lower <= wait < upper for wait in first_waits) for lower, upper in pairwise((0.0, 1.0, 2.0))]
    assert 0.05 * USERS < within[1] < within[0] < 0.3 * USERS
