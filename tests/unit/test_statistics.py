# SPDX-License-Identifier: Apache-2.0
"""Estimates: their intervals, how they combine, and the rates at which verdicts on known truth err."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from simulated_verdicts import ORDER, SIDES, VARYING, What, parts_that_fail, rates

from longfat.metrics.moderation import prior_of
from longfat.metrics.orders import Median, Narrowest, Sampled, Widest, bootstrapped, tally
from longfat.metrics.statistics import (
    Estimate,
    Prior,
    difference,
    exactly,
    extreme,
    percent_gain,
    product,
    ratio,
    stratified,
    total,
)
from longfat.relations.limits import LEVEL, Limits

T_2 = 4.302653  # two-sided 95 % quantile of two degrees of freedom


def estimate(*rows: list[float], prior: Prior | None = None, name: str = "s", block: str = "e") -> Estimate:
    """Scenarios with these runs, one for each repetition."""
    values = {
        f"{name}{place}": {(name, place, k): ((block, k), value) for k, value in enumerate(row)}
        for place, row in enumerate(rows)
    }
    return stratified(values, prior or Prior(), (0.0, math.inf))


def test_mean_and_interval_of_three_values_are_those_of_the_table() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert (found.value, found.n, found.runs, found.spread.degrees) == (2.0, 3, 3, 2)
    assert found.interval()[1] - 2 == pytest.approx(T_2 / math.sqrt(3), rel=1e-5)
    with pytest.raises(ValueError, match="at least one value"):
        stratified({})


def test_the_mean_over_scenarios_is_that_of_their_means_and_each_adds_its_own_variance() -> None:
    found = estimate([1.0, 2.0, 3.0], [11.0, 12.0, 10.0])
    assert found.value == 6.5
    assert found.spread.error == pytest.approx(math.sqrt((1 / 3 + 1 / 3) / 4))
    assert found.spread.degrees == pytest.approx(4)


def test_an_exact_number_and_runs_that_are_all_the_same_have_no_interval() -> None:
    assert exactly(5.0).interval() == (5.0, 5.0)
    same = estimate([0.1 + 0.2, 0.1 + 0.2, 0.1 + 0.2])
    assert same.exact
    assert same.interval() == (same.value, same.value)
    for runs in (5, 6):  # whose sisters vary
        values = {run: (run, 7.0) for run in range(runs)}
        assert stratified({"a": values}, Prior(1.0, 9.0)).exact is (runs == 6)


def test_a_difference_of_runs_that_nothing_joins_is_that_of_welch() -> None:
    one, other = estimate([1.0, 2.0, 3.0], name="a", block="a"), estimate([3.0, 5.0, 7.0], name="b", block="b")
    gap = difference(other, one)
    assert gap.value == 3
    assert gap.spread.error == pytest.approx(math.sqrt(1 / 3 + 4 / 3))
    assert gap.spread.degrees == pytest.approx((5 / 3) ** 2 / ((1 / 3) ** 2 / 2 + (4 / 3) ** 2 / 2))


def test_scenarios_whose_runs_are_byte_identical_one_by_one_do_not_differ() -> None:
    prior = Prior(variance=900.0, degrees=4.0)
    runs = {k: (("e", k), value) for k, value in enumerate((712.0, 705.5, 731.25))}
    short, long = (stratified({name: runs}, prior) for name in ("short", "long"))
    assert difference(short, long).interval() == (0.0, 0.0)
    assert ratio(short, long).interval() == (1.0, 1.0)
    another = stratified({"long": {**runs, 3: (("e", 3), 712.0)}}, prior)
    low, high = difference(short, another).interval()
    assert low < high


def test_runs_that_go_together_are_paired_by_repetition_and_the_gain_is_told() -> None:
    shape = [0.0, 10.0, -7.0, 4.0, -3.0]
    one, other = estimate([value + 0.1 * k for k, value in enumerate(shape)], name="a"), estimate(shape, name="b")
    apart = difference(one, other)
    together = difference(*(dataclasses.replace(side, together=0.001) for side in (one, other)))
    assert together.spread.degrees == 4
    assert together.spread.error < apart.spread.error / 10
    assert together.spread.gain is not None
    assert together.spread.gain > 100


def test_repetitions_that_one_side_lacks_add_no_certainty_to_the_other() -> None:
    few, many = [4.0, -5.0, 1.0], [0.1, 0.0, -0.2, 0.2, -0.1, 0.1]
    for size in (4, 6):
        sides = (estimate(few, name="a"), estimate(many[:size], name="b"))
        gap = difference(*(dataclasses.replace(side, together=0.001) for side in sides))
        assert gap.spread.degrees == pytest.approx(2, abs=0.1)
        assert gap.spread.error == pytest.approx(sides[0].spread.error, rel=0.2)


def test_the_same_runs_on_both_sides_cancel() -> None:
    one = estimate([101.0, 102.0, 104.0])
    assert difference(one, one).exact
    assert ratio(one, one).interval() == (1, 1)


def test_scenarios_without_randomness_do_not_change_the_number_of_runs() -> None:
    random, certain = estimate([11.0, 12.0, 13.0]), estimate([5.0], name="c")
    for both in (difference(random, certain), ratio(random, certain)):
        assert (both.runs, both.n) == (3, 3)
    assert difference(random, certain).interval()[0] == pytest.approx(random.interval()[0] - 5)
    assert difference(certain, certain).runs == 1


def test_a_gain_is_in_percent_and_its_interval_is_made_on_the_log_scale() -> None:
    one, other = estimate([948.0, 950, 946], name="a", block="a"), estimate([828.0, 829, 827], name="b", block="b")
    gain = percent_gain(one, other)
    low, high = gain.interval()
    assert gain.value == pytest.approx(14.49, abs=0.01)
    middle = math.sqrt((1 + low / 100) * (1 + high / 100))
    assert 100 * (middle - 1) == pytest.approx(gain.value, rel=1e-9)
    assert gain.p_above(low) == pytest.approx(0.025, rel=1e-6)


def test_sums_and_products_have_their_values_and_a_divisor_around_zero_is_refused() -> None:
    one, other = estimate([1.0, 2.0, 3.0], name="a"), estimate([3.0, 5.0, 7.0], name="b")
    assert (total(one, other).value, product(one, other).value) == (7, 10)
    assert (extreme([one, other], max), extreme([one, other], min)) == (other, one)
    with pytest.raises(ValueError, match="not above zero"):
        ratio(estimate([1.0, 2.0]), estimate([-1.0, 3.0]))


def test_scenarios_with_equal_scatter_lend_degrees_of_freedom_to_runs_that_are_close_by_chance() -> None:
    rng = np.random.default_rng(5)
    sisters = [dict(enumerate(rng.normal(0, 10, 3))) for _ in range(30)]
    prior = prior_of(sisters)
    assert prior.degrees > 4
    assert 50 < prior.variance < 200
    wild = {block: 1000 * value for block, value in sisters[0].items()}
    assert prior_of([wild, *sisters[1:]]).variance < 2 * prior.variance
    lucky = [100.0, 100.1, 99.9]
    assert estimate(lucky, prior=prior).spread.error > 20 * estimate(lucky).spread.error


def test_repetitions_that_move_all_scenarios_are_found_to_go_together() -> None:
    rng = np.random.default_rng(5)
    common = rng.normal(0, 1, 4)
    joined = [dict(enumerate(common + rng.normal(0, 0.3, 4))) for _ in range(10)]
    apart = [dict(enumerate(rng.normal(0, 1, 4))) for _ in range(10)]
    assert prior_of(joined).together < 1e-6 < 0.01 < prior_of(apart).together


def test_a_median_with_few_values_has_only_its_bounds_and_with_more_two_of_its_values() -> None:
    assert Median((1.0, 2.0, 3.0), 3, bounds=(0, 100)).interval() == (0, 100)
    many = Median(tuple(float(k) for k in range(1, 13)), 12, bounds=(0, 100))
    near = Median((96.0, 97.0, 98.0, 99.0, 100.0), 5, bounds=(0, 100))
    assert Limits(90.0, 100.0, True).decide(near).outcome == "reproduced", "nothing is beyond a bound"
    assert (many.value, *many.interval()) == (6.5, 3, 10)
    assert many.p_above(0) == pytest.approx(0.5**12)


def test_a_bootstrap_of_an_order_has_its_frequency() -> None:
    samples = bootstrapped([1.0, 1.0, 1.0, 5.0], max)
    found = Sampled(1.0, samples, 4)
    assert found.p_below(2) == pytest.approx(1 - 0.75**3, abs=0.05)
    assert found.interval(0.8) == (1, 5)


def test_the_widest_of_pairs_must_be_inside_with_every_one_and_outside_with_one() -> None:
    near, far = estimate([1.0, 1.1, 0.9]), estimate([8.0, 8.1, 7.9])
    both = Widest((near, far))
    assert both.value == far.value
    assert both.p_below(5) == far.p_below(5) > 0.9
    assert both.p_above(5) == pytest.approx(2 * far.p_above(5))
    least = Narrowest((near, far))
    assert (least.value, least.p_below(1.5)) == (near.value, pytest.approx(2 * near.p_below(1.5)))
    assert least.p_above(5) == near.p_above(5) > 0.9


def test_a_count_is_sure_only_of_values_far_from_the_level() -> None:
    near, far = estimate([1.0, 1.1, 0.95]), estimate([8.0, 8.1, 7.9])
    found = tally([near] * 3 + [far] * 2, 1.0, True, lambda mean: mean > 1)
    assert (found.value, found.interval()) == (5, (2, 5))
    assert found.p_above(1.5) == pytest.approx(4 * far.p_above(1))


TIMES = 150
MOST = LEVEL + 3.1 * math.sqrt(LEVEL * (1 - LEVEL) / TIMES)  # of a rate of 5 %, except once in a thousand


@pytest.mark.parametrize("kind", VARYING)
@pytest.mark.parametrize("what", ["two scenarios", "two means"])
@pytest.mark.parametrize("shared", [0.0, 0.4])
def test_an_order_of_equals_is_rarely_decided(kind: str, what: What, shared: float) -> None:
    found = rates(kind, 3, shared, what, 0.0, ORDER, TIMES)
    assert found.holds <= MOST
    assert found.fails <= MOST


def test_no_effect_is_rarely_found_where_there_is_half_of_the_papers() -> None:
    found = rates("normal", 5, 0.0, "two means", 4.0, Limits(0.0, math.inf, False, 4.0), TIMES)
    assert found.fails <= MOST


@pytest.mark.parametrize(
    "allowed", [Limits(0.0, math.inf, False), Limits(0.0, 1.6, False), Limits(0.0, 1.6, True), Limits(-1.0, 2.0, False)]
)
def test_the_repetitions_needed_find_the_papers_number_inside_in_four_of_five_cases(allowed: Limits) -> None:
    draws, paper = np.random.default_rng(7), 0.8
    pilot = estimate(list(draws.normal(-5.0, 1.0, 400)))  # whatever the mean is
    needed = allowed.repetitions(pilot, paper)
    runs = draws.normal(paper, 1.0, (500, needed or 0))
    found = [allowed.decide(estimate(list(row))).outcome == "reproduced" for row in runs]
    assert np.mean(found) == pytest.approx(0.8, abs=0.06)


def test_the_repetitions_needed_for_a_ratio_are_those_of_its_inverse() -> None:
    one, other = estimate([4.0, 5.0, 6.0], name="a", block="a"), estimate([7.0, 9.0, 11.0], name="b", block="b")
    below, above = Limits(-math.inf, 1.0, False), Limits(1.0, math.inf, False)
    assert below.repetitions(ratio(one, other), 0.8) == above.repetitions(ratio(other, one), 1.25) > 3  # type: ignore[operator]
    assert Limits(3.0, 7.0, True).repetitions(one, None) == Limits(3.0, 7.0, True).repetitions(one, 5.0)
    unknown = [above.repetitions(one, None), above.repetitions(one, 0.5), above.repetitions(Median((1.0, 2.0), 2), 2.0)]
    assert unknown == [None] * 3, "without the paper's number, with one outside, of a median"


def test_constant_runs_are_decided_by_comparison_alone() -> None:
    for what in SIDES:
        assert rates("constant", 3, 0.0, what, 0.5, ORDER, 2) == (1, 0)
        assert rates("constant", 3, 0.0, what, -0.5, ORDER, 2) == (0, 1)


def test_one_of_many_true_parts_rarely_fails() -> None:
    assert parts_that_fail("normal", 3, 8, TIMES // 2) <= LEVEL + 3.1 * math.sqrt(LEVEL / (TIMES // 2))
