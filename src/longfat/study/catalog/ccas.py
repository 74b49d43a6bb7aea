# SPDX-License-Identifier: Apache-2.0
"""The kernel's congestion controls with their parameters, from ``ccas.toml``.

Owns the conversion of parameters into sysctls. The backend checks whether its kernel offers an algorithm.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

Value = float | str
"""A parameter in a manifest: a number, or one of the parameter's words."""

UNITS = {"ppm": 1_000_000, "ppb": 1_000_000_000, "milli": 1_000}
"""Sysctl value of 1 in a manifest, by unit. The sysctl's name ends with the unit; a manifest leaves it out."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of an algorithm: its sysctl, with range and default in the sysctl's unit.

    A manifest gives a number, which is multiplied by ``per_unit`` for the sysctl. A parameter with ``words`` takes one
    of these words; the sysctl holds its index, from 0.
    """

    sysctl: str
    per_unit: int
    minimum: int
    maximum: int
    default: int
    meaning: str
    words: tuple[str, ...] = ()

    def scaled(self, value: Value) -> Decimal:
        """Return ``value`` in the sysctl's unit, exactly as written: 0.02 gives 20000 parts per million.

        Raises ValueError for an unknown word.
        """
        return Decimal(self.words.index(value)) if isinstance(value, str) else Decimal(repr(value)) * self.per_unit

    @property
    def range_text(self) -> str:
        """Values that a manifest may give: the words, or the range with both ends."""
        if self.words:
            return ", ".join(self.words)
        return f"{plain(self.minimum / self.per_unit)} to {plain(self.maximum / self.per_unit)}"

    @property
    def default_text(self) -> str:
        """Default as a manifest would give it."""
        return self.words[self.default] if self.words else plain(self.default / self.per_unit)


@dataclass(frozen=True)
class Cca:
    """A congestion control by the kernel's own name, with its parameters by their manifest names.

    ``draws`` states whether it uses the kernel's random numbers.
    """

    name: str
    source: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    draws: bool = False

    @property
    def allowed(self) -> Mapping[str, Parameter]:
        """All parameters that a manifest may give, by name: first the algorithm's own, then the stack's."""
        return {**self.parameters, **STACK_PARAMETERS}

    def sysctls(self, given: Mapping[str, Value]) -> dict[str, str]:
        """Return the sysctls of all parameters, including defaults, so that no run depends on an earlier one.

        ``given`` has the parameters of a manifest, already checked against the ranges.
        """
        return {
            parameter.sysctl: str(int(parameter.scaled(given[name])) if name in given else parameter.default)
            for name, parameter in self.allowed.items()
            if name not in STACK_PARAMETERS or given.get(name, parameter.words[0]) != parameter.words[0]
        }


def plain(number: float) -> str:
    """Return a decimal text without an exponent or trailing zeros: 1e-06 gives 0.000001."""
    text = f"{Decimal(repr(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _choice(sysctl: str, words: tuple[str, ...], meaning: str) -> Parameter:
    """Return a parameter whose first word is the default."""
    return Parameter(sysctl, 1, 0, len(words) - 1, 0, meaning, words)


def _parameter(cca: str, name: str, entry: Mapping[str, Any]) -> Parameter:
    sysctl = f"net.ipv4.tcp_{cca}.{name}"
    if "words" in entry:
        return _choice(sysctl, tuple(entry["words"]), entry["meaning"])
    unit = entry.get("unit")
    sysctl, per_unit = (f"{sysctl}_{unit}", UNITS[unit]) if unit else (sysctl, 1)
    minimum, maximum = entry["range"]
    return Parameter(sysctl, per_unit, minimum, maximum, entry["default"], entry["meaning"])


def _read() -> dict[str, Cca]:
    ccas = {}
    for name, entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items():
        parameters = {key: _parameter(name, key, value) for key, value in entry.items() if isinstance(value, dict)}
        ccas[name] = Cca(name, entry["source"], parameters, entry.get("draws", False))
    return ccas


CCAS: Mapping[str, Cca] = _read()

STACK_PARAMETERS: Mapping[str, Parameter] = {
    "local_congestion": _choice(
        "net.ipv4.tcp_local_congestion",
        ("as_loss", "half", "ignored"),
        "reaction of the window to a full local queue",
    )
}
"""Parameters of the stack that come with the patch of an algorithm. The first word of each is stock Linux."""

PARAMETER_SYSCTLS: frozenset[str] = frozenset(
    parameter.sysctl for cca in CCAS.values() for parameter in cca.parameters.values()
)
