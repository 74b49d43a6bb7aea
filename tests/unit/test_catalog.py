# SPDX-License-Identifier: Apache-2.0
"""The catalogue is consistent with itself, and its parameters become exact sysctls."""

import re

from longfat.catalog.ccas import CCAS, parameter_sysctls
from longfat.catalog.stacks import RECEIVER_SETTINGS, STACKS


def test_scalable_parameters_become_parts_per_million() -> None:
    assert parameter_sysctls("scalable", {"a": 0.02, "b": 0.125}) == {
        "net.ipv4.tcp_scalable_a_ppm": "20000",
        "net.ipv4.tcp_scalable_b_ppm": "125000",
    }


def test_parameters_left_out_are_set_to_the_kernels_default() -> None:
    assert parameter_sysctls("scalable", {}) == {
        "net.ipv4.tcp_scalable_a_ppm": "10000",
        "net.ipv4.tcp_scalable_b_ppm": "125000",
    }


def test_an_algorithm_without_parameters_sets_nothing() -> None:
    assert parameter_sysctls("reno", {}) == {}


def test_ranges_are_worded_in_the_manifests_units() -> None:
    parameters = CCAS["scalable"].parameters
    assert parameters["a"].range_text == "0.000001 to 1"
    assert parameters["b"].range_text == "0.000001 to 0.999999"


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
        names = [setting.sysctl for setting in (*stack.settings, *RECEIVER_SETTINGS)]
        assert len(names) == len(set(names))
        assert all(re.fullmatch(r"net(\.[a-z0-9_]+)+", name) for name in names)
        assert all(len(setting.reason) > 20 for setting in stack.settings)
