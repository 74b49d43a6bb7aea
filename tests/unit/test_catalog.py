# SPDX-License-Identifier: Apache-2.0
"""Consistency of the catalogue, and exact sysctls from its parameters."""

import re

from longfat.catalog.ccas import CCAS, PARAMETER_SYSCTLS
from longfat.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, STACKS


def test_scalable_parameters_become_parts_per_million() -> None:
    assert CCAS["scalable"].sysctls({"a": 0.02, "b": 0.125, "lwnd": 16}) == {
        "net.ipv4.tcp_scalable.a_ppm": "20000",
        "net.ipv4.tcp_scalable.b_ppm": "125000",
        "net.ipv4.tcp_scalable.lwnd": "16",
    }


def test_parameters_left_out_are_set_to_the_kernels_default() -> None:
    assert CCAS["scalable"].sysctls({}) == {
        "net.ipv4.tcp_scalable.a_ppm": "10000",
        "net.ipv4.tcp_scalable.b_ppm": "125000",
        "net.ipv4.tcp_scalable.lwnd": "0",
    }


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


def test_a_word_becomes_its_place_in_the_list() -> None:
    sysctls = CCAS["compound"].sysctls({"burst": "partial", "autotune": "diffwnd"})
    assert sysctls["net.ipv4.tcp_compound.burst"] == "2"
    assert sysctls["net.ipv4.tcp_compound.autotune"] == "1"


def test_an_algorithm_without_parameters_sets_nothing() -> None:
    assert CCAS["cubic"].sysctls({}) == {}


def test_ranges_are_worded_in_the_manifests_units() -> None:
    assert CCAS["scalable"].parameters["a"].range_text == "0.000001 to 1"
    assert CCAS["scalable"].parameters["b"].range_text == "0.000001 to 0.999999"
    assert CCAS["highspeed"].parameters["high_p"].range_text == "0.000000001 to 0.001"
    assert CCAS["compound"].parameters["burst"].range_text == "plain, muted, partial"


def test_defaults_are_worded_in_the_manifests_units() -> None:
    assert CCAS["highspeed"].parameters["high_p"].default_text == "0.0000001"
    assert CCAS["compound"].parameters["autotune"].default_text == "off"


def test_every_sysctl_is_below_the_name_of_its_algorithm_and_belongs_to_one_parameter() -> None:
    for cca in CCAS.values():
        assert all(p.sysctl.startswith(f"net.ipv4.tcp_{cca.name}.") for p in cca.parameters.values())
    assert len(PARAMETER_SYSCTLS) == sum(len(cca.parameters) for cca in CCAS.values())


def test_giving_every_default_is_the_same_as_giving_nothing() -> None:
    for cca in CCAS.values():
        given = {n: p.default_text if p.words else float(p.default_text) for n, p in cca.parameters.items()}
        assert cca.sysctls(given) == cca.sysctls({})


def test_defaults_lie_within_their_ranges() -> None:
    every = [parameter for cca in CCAS.values() for parameter in cca.parameters.values()]
    assert every
    assert all(parameter.minimum <= parameter.default <= parameter.maximum for parameter in every)


def test_the_modern_stack_changes_nothing() -> None:
    assert STACKS["modern"].sysctls == {}
    assert STACKS["modern"].initial_cwnd_segments is None


def test_the_stack_of_2003_has_no_limit_on_local_queues_and_starts_with_two_segments() -> None:
    stack = STACKS["linux-2.4"]
    assert stack.initial_cwnd_segments == 2
    assert stack.sysctls["net.ipv4.tcp_small_queues"] == "0"
    assert stack.sysctls["net.ipv4.tcp_no_metrics_save"] == "1"


def test_every_setting_is_set_once_and_has_a_reason() -> None:
    for stack in STACKS.values():
        by_the_testbed = {setting.sysctl for setting in (*SENDER_SETTINGS, *RECEIVER_SETTINGS)}
        names = [*(setting.sysctl for setting in stack.settings), *by_the_testbed]
        assert len(names) == len(set(names))
        assert all(re.fullmatch(r"net(\.[a-z0-9_]+)+", name) for name in names)
        assert all(len(setting.reason) > 20 for setting in stack.settings)
