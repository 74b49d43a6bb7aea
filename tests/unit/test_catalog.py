# SPDX-License-Identifier: Apache-2.0
"""Exact sysctls from the parameters of the catalogue."""

from longfat.study.catalog.ccas import CCAS


def test_each_unit_of_highspeed_keeps_its_last_digit() -> None:
    given = {"low_window": 8, "high_window": 8.3, "high_p": 1e-7, "high_decrease": 0.1}
    assert list(CCAS["highspeed"].sysctls(given).items()) == [
        ("net.ipv4.tcp_highspeed.low_window", "8"),
        ("net.ipv4.tcp_highspeed.high_window_milli", "8300"),
        ("net.ipv4.tcp_highspeed.high_p_ppb", "100"),
        ("net.ipv4.tcp_highspeed.high_decrease_ppm", "100000"),
        ("net.ipv4.tcp_highspeed.current_window", "0"),
        ("net.ipv4.tcp_highspeed.count_segments", "0"),
    ]


def test_giving_every_default_is_the_same_as_giving_nothing() -> None:
    for cca in CCAS.values():
        given = {n: p.default_text if p.words else float(p.default_text) for n, p in cca.parameters.items()}
        assert cca.sysctls(given) == cca.sysctls({})
