# SPDX-License-Identifier: Apache-2.0
"""Quantities and the formulas of derived values: exact, with dimensions, and with the column of each fault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat.spec.units import Duration, Quantity, Rate, Ratio, Size
from longfat.study.formulas import Amount, Formula, FormulaError, amount_of
from longfat.system.errors import StudyError

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
        ("-streams + 20", 4),
        ("8 - 3 - 2", 3),
        ("path.rate * path.rtt", "875 kB"),
        ("ceil(path.rate * path.rtt / packet / 4)", 146),
        ("floor(path.rate * path.rtt / 1 MB * 10) * 100 kB", "800 kB"),
        ("packet / path.rate", "120 us"),
        ("path.rate / streams", "6250 kbit/s"),
        ("max(path.rtt, 100 ms)", "100 ms"),
        ("min(streams, 3, 5)", 3),
        ("share * 1 s", "250 ms"),
        ("round(2.5)", 3),
        ("round(2.4)", 2),
    ],
)
def test_a_formula_has_the_value_that_its_units_give(text: str, value: float | str) -> None:
    assert Formula(text).value(value_of) == value


@pytest.mark.parametrize(
    ("text", "column", "named", "hint"),
    [
        ("1 +", 4, "a name", ""),
        ("(1 + 2", 7, "')'", ""),
        ("2 ^ 3", 3, "'^'", ""),
        ("1 + 9999999999999999 s", 5, "9999999999999999 s", ""),
        ("1 + streems", 5, "'streems'", ""),
        ("1 + rund(2)", 5, "'rund'", "'round'"),
        ("path.rate + path.rtt", 1, "a rate and a length of time", ""),
        ("round(packet)", 1, "a size", "/ 1 B"),
        ("round(1, 2)", 1, "2", ""),
        ("1 + 2 / 0", 5, "zero", ""),
        ("packet * packet", 1, "neither", "units fit"),
        ("packet / 7", 1, "whole number of B", "round(... / 1 B)"),
        ("0.5 us", 1, "0.5 us", ""),
        ("1e400 / 3", 1, "digits", ""),
    ],
)
def test_a_fault_of_a_formula_has_its_column(text: str, column: int, named: str, hint: str) -> None:
    with pytest.raises(FormulaError, match=f"^column {column}: ") as caught:
        Formula(text).value(value_of)
    assert named in caught.value.message
    assert hint in (caught.value.hint or "")


KINDS: list[type[Quantity]] = [Duration, Size, Rate, Ratio]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Duration, {"30 ms": 30_000, "1.5 s": 1_500_000, "0 s": 0}),
        (Size, {"4 MiB": 4 << 20, "4 MB": 4_000_000, "9000 B": 9000, "0.5 KiB": 512}),
        (Rate, {"2.4 Gbit/s": 2_400_000_000, "100Mbit/s": 100_000_000}),
        (Ratio, {"12.5 %": 125_000}),
    ],
)
def test_a_number_with_a_unit_becomes_whole_base_units(kind: type[Quantity], values: dict[str, int]) -> None:
    assert {text: kind.parse(text).value for text in values} == values


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (Duration, ["30", "30 msec", "-30 ms", "0.5 us"]),
        (Size, ["1.5 B", "4 mib", "4 Mbit/s"]),
        (Rate, ["1 Gb/s", "fast", "1e9 bit/s"]),
    ],
)
def test_a_text_that_is_no_exact_quantity_is_refused(kind: type[Quantity], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(StudyError, match=text):
            kind.parse(text)


@given(st.sampled_from(KINDS), st.integers(min_value=0, max_value=10**14))
def test_every_quantity_reads_back_from_its_own_text(kind: type[Quantity], value: int) -> None:
    assert kind.parse(str(kind(value))) == kind(value)
