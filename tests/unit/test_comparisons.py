# SPDX-License-Identifier: Apache-2.0
"""The comparisons of a relation, on given numbers: zeros, equal numbers, extremes in arithmetic, and units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from fabricated_results import write_study

from longfat.metrics.quantities import Selection
from longfat.metrics.statistics import Estimate, stratified
from longfat.relations.evaluate import Evidence, Rule, comparisons, decided
from longfat.relations.syntax import parse
from longfat.relations.tree import Readings
from longfat.study.load import load_study
from longfat.study.study import Study

Numbers = Mapping[str, Sequence[float]]
FEW = [9.0, 11.0, 10.0, 9.5]


@dataclass(frozen=True)
class Given(Readings):
    """The runs of each algorithm, or of an experiment without one."""

    numbers: Numbers = field(default_factory=dict)

    def read(self, selection: Selection, least: int | None) -> Estimate:
        condition = dict(selection.where).get("algorithm")
        name = str(condition.values[0]) if condition else selection.experiment
        runs = {(name, number): (number, float(value)) for number, value in enumerate(self.numbers[name])}
        return stratified({name: runs}, bounds=(0.0, math.inf))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return load_study(write_study(tmp_path_factory.mktemp("comparisons")) / "study.yaml")


def decide(text: str, study: Study, numbers: Numbers, law: bool = False) -> Evidence:
    (found,) = decided(comparisons(parse(text), Given(study, numbers), Rule(law)))
    return found


@pytest.mark.parametrize(
    ("sign", "turned", "word"),
    [("=", "=", "not reproduced"), ("<=", ">=", "reproduced"), (">=", "<=", "not reproduced")],
)
def test_a_ratio_to_zeros_is_decided_like_its_inverse(sign: str, turned: str, word: str, study: Study) -> None:
    none, some = "cuts[delay, standard]", "cuts[delay, highspeed]"
    numbers = {"standard": [0.0] * 8, "highspeed": FEW * 2}
    for text in (f"{none} {sign} {some}", f"{some} {turned} {none}"):
        assert decide(text, study, numbers).outcome == word, text
    assert decide(f"{none} = {some}", study, {"standard": [0.0, 1, 0], "highspeed": [0.0, 0, 1]}).outcome == "undecided"


@pytest.mark.parametrize(("runs", "word"), [(2, "undecided"), (5, "undecided"), (6, "reproduced")])
def test_few_runs_that_differ_decide_nothing_by_equal_values_except_a_law(runs: int, word: str, study: Study) -> None:
    numbers = {"standard": [3.0] * runs, "highspeed": [4.0] * runs}
    for text in ("cuts[delay, highspeed] > cuts[delay, standard]", "cuts[delay, standard] <= 5"):
        assert decide(text, study, numbers).outcome == word
        assert decide(text, study, numbers, law=True).outcome == "reproduced"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("max", "goodput[one-drop] <= PEERS"),
        ("min", "goodput[one-drop] >= PEERS"),
        ("max", "PEERS > goodput[one-drop]"),
        ("max", "gain(PEERS, goodput[one-drop]) > -5"),
        ("min", "2 - PEERS / goodput[one-drop] > 0.9"),
    ],
)
def test_one_extreme_suffices_at_the_price_of_the_choice(kind: str, text: str, study: Study) -> None:
    numbers = {"one-drop": FEW, "standard": [10.5, 10.0, 11.5, 9.0], "highspeed": [9.5, 12.0, 9.0, 10.5]}
    whole = decide(text.replace("PEERS", f"{kind}(goodput[delay] for algorithm)"), study, numbers)
    single = [
        decide(text.replace("PEERS", f"goodput[delay, {name}]"), study, numbers) for name in ("standard", "highspeed")
    ]
    assert whole.p_inside == pytest.approx(min(1, 2 * min(one.p_inside or 0 for one in single)))


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("goodput[one-drop] / 1000 = 0.01", ""),
        ("1000 / goodput[one-drop] = 100", ""),
        ("goodput[one-drop] + goodput[delay, standard] = 20", "Mb/s"),
        ("goodput[one-drop] + cuts[delay, standard] = 20", ""),
    ],
)
def test_a_number_that_may_change_the_unit_leaves_none(text: str, unit: str, study: Study) -> None:
    assert decide(text, study, {"one-drop": FEW, "standard": FEW}).unit == unit
