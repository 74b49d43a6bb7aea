# SPDX-License-Identifier: Apache-2.0
"""Quantities: exact conversion, strict prefixes, and texts that read back as the same value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat.spec.units import Duration, Quantity, Rate, Ratio, Size
from longfat.system.errors import StudyError

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
