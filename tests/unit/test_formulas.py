# SPDX-License-Identifier: Apache-2.0
"""The formulas of derived values: exact, with dimensions, and with the column of each fault."""

import pytest

from longfat.errors import StudyError
from longfat.manifest.formulas import Amount, Formula, FormulaError, amount_of

VALUES: dict[str, str | int] = {
    "path.rate": "100 Mbit/s",
    "path.rtt": "70 ms",
    "packet": "1500 B",
    "streams": 16,
    "share": "25 %",
}


def value_of(name: str) -> Amount:
    if name not in VALUES:
        raise StudyError(f"unknown name {name!r}")
    amount = amount_of(VALUES[name])
    assert amount
    return amount


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / 2", 3.5),
        ("-streams + 20", 4),
        ("8 - 3 - 2", 3),
        ("path.rate * path.rtt", "875 kB"),
        ("path.rate * path.rtt / packet", 583.3333333333334),
        ("ceil(path.rate * path.rtt / packet / 4)", 146),
        ("floor(path.rate * path.rtt / 1 MB * 10) * 100 kB", "800 kB"),
        ("packet / path.rate", "120 us"),
        ("path.rate / streams", "6250 kbit/s"),
        ("path.rtt + 10 ms", "80 ms"),
        ("max(path.rtt, 100 ms)", "100 ms"),
        ("min(streams, 3, 5)", 3),
        ("share * 1 s", "250 ms"),
        ("10 min / 2", "5 min"),
        ("round(2.5)", 3),
        ("round(2.4)", 2),
    ],
)
def test_a_formula_has_the_value_that_its_units_give(text: str, value: float | str) -> None:
    assert Formula(text).value(value_of) == value


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "column 1: expected a quantity such as 10 ms, a number, a name, (, -; found the end", None),
        ("1 +", "column 4: expected a quantity such as 10 ms, a number, a name, (, -; found the end", None),
        ("(1 + 2", "column 7: expected ), +, -; found the end", None),
        ("1 2", "column 3: expected +, -, *, /, the end; found '2'", None),
        ("2 ^ 3", "column 3: '^' is not allowed in a formula", None),
        ("1 + 9999999999999999 s", "column 5: '9999999999999999 s' has more digits than a quantity may have", None),
        ("1 + streems", "column 5: unknown name 'streems'", None),
        ("1 + rund(2)", "column 5: unknown function 'rund'; allowed: min, max, round, floor, ceil", "'round'"),
        (
            "path.rate + path.rtt",
            "column 1: + needs amounts of one kind, but these are a rate and a length of time",
            None,
        ),
        ("min(1, 10 ms)", "column 1: min needs amounts of one kind, but these are a number and a length of time", None),
        ("round(packet)", "column 1: round takes a number, but this is a size", "/ 1 B"),
        ("round(1, 2)", "column 1: round takes one number, but 2 are given", None),
        ("1 + 2 / 0", "column 5: division by zero", None),
        (
            "packet * packet",
            "column 1: the result is neither a number, a length of time, a size nor a rate",
            "units fit",
        ),
        ("packet / 7", "column 1: the result is not a whole number of B; values are never rounded", "round(... / 1 B)"),
        ("packet - 2 kB", "column 1: the result is negative; a size must be 0 or more", None),
        ("0.5 us", "column 1: '0.5 us' is not a whole number of us; values are never rounded", None),
    ],
)
def test_a_fault_of_a_formula_has_its_column_and_what_was_expected(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(FormulaError) as caught:
        Formula(text).value(value_of)
    assert caught.value.message == message
    if hint:
        assert hint in (caught.value.hint or "")
