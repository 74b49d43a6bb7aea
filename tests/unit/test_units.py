# SPDX-License-Identifier: Apache-2.0
"""Quantities: exact conversion, strict prefixes, and texts that read back as the same value."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longfat.spec.units import Duration, Quantity, Rate, Ratio, Size, read_quantity
from longfat.system.errors import StudyError

KINDS: list[type[Quantity]] = [Duration, Size, Rate, Ratio]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Duration, "30 ms", 30_000),
        (Duration, "1.5 s", 1_500_000),
        (Duration, "0 s", 0),
        (Size, "4 MiB", 4 << 20),
        (Size, "4 MB", 4_000_000),
        (Size, "9000 B", 9000),
        (Size, "0.5 KiB", 512),
        (Rate, "2.4 Gbit/s", 2_400_000_000),
        (Rate, "100Mbit/s", 100_000_000),
        (Ratio, "12.5 %", 125_000),
    ],
)
def test_a_number_with_a_unit_becomes_whole_base_units(kind: type[Quantity], text: str, value: int) -> None:
    assert kind.parse(text).value == value


@pytest.mark.parametrize(
    ("kind", "text", "message", "hint"),
    [
        (Duration, "30", "'30' has no unit; a length of time needs one", '"30 ms"; units: us, ms, s, min'),
        (Duration, "30 msec", "'msec' in '30 msec' is not a unit of a length of time", "did you mean 'ms'?"),
        (Duration, "-30 ms", "'-30 ms' is negative; a length of time must be 0 or more", None),
        (Duration, "0.5 us", "'0.5 us' is not a whole number of us; values are never rounded", None),
        (Size, "1.5 B", "'1.5 B' is not a whole number of B", None),
        (Size, "4 mib", "'mib' in '4 mib' is not a unit of a size", "did you mean 'MiB'?"),
        (Size, "4 Mbit/s", "'Mbit/s' in '4 Mbit/s' is not a unit of a size", "B, KiB"),
        (Rate, "1 Gb/s", "'Gb/s' in '1 Gb/s' is not a unit of a rate", "did you mean 'Gbit/s'?"),
        (Rate, "fast", "'fast' is not a rate", '"1 Gbit/s"'),
        (Rate, "1e9 bit/s", "'1e9 bit/s' is not a rate", None),
    ],
)
def test_a_text_that_is_no_exact_quantity_is_refused(
    kind: type[Quantity], text: str, message: str, hint: str | None
) -> None:
    with pytest.raises(StudyError) as caught:
        kind.parse(text)
    assert message in caught.value.message
    if hint:
        assert hint in (caught.value.hint or "")


@settings(derandomize=True, database=None)
@given(st.sampled_from(KINDS), st.integers(min_value=0, max_value=10**14))
def test_every_quantity_reads_back_from_its_own_text(kind: type[Quantity], value: int) -> None:
    assert kind.parse(str(kind(value))) == kind(value)


@settings(derandomize=True, database=None)
@given(st.sampled_from(KINDS), st.data(), st.integers(min_value=0, max_value=10**6))
def test_every_unit_is_exact(kind: type[Quantity], data: st.DataObject, number: int) -> None:
    unit = data.draw(st.sampled_from(sorted(kind.units)))
    assert kind.parse(f"{number} {unit}").value == number * kind.units[unit]


def test_the_dimension_follows_from_the_unit() -> None:
    assert read_quantity("1 MiB") == Size(1 << 20)
    assert read_quantity("1 Mbit/s") == Rate(1_000_000)
    assert read_quantity("reno") is None
    assert read_quantity("12") is None


def test_a_quantity_cannot_be_negative() -> None:
    with pytest.raises(StudyError, match="-1 is negative; a size must be 0 or more"):
        Size(-1)
