# SPDX-License-Identifier: Apache-2.0
"""The kernel's congestion controls and the parameters that can be set for each network namespace.

Plain data with the one pure function that turns parameters into sysctls; whether a kernel offers an
algorithm is checked when it runs, not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal


@dataclass(frozen=True)
class Parameter:
    """One number of an algorithm: its sysctl, the sysctl's units in 1, and its range in those units."""

    sysctl: str
    per_unit: int
    minimum: int
    maximum: int
    default: int
    meaning: str

    def scaled(self, value: float) -> Decimal:
        """``value`` in the sysctl's units, exactly as written: 0.02 gives 20000 parts per million."""
        return Decimal(repr(value)) * self.per_unit

    @property
    def range_text(self) -> str:
        """The range in the manifest's units, ends included."""
        return f"{plain(self.minimum / self.per_unit)} to {plain(self.maximum / self.per_unit)}"


@dataclass(frozen=True)
class Cca:
    """A congestion control by the kernel's own name, with its parameters by their manifest names."""

    name: str
    source: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


_PPM = 1_000_000

# The two sysctls are the project's own switches: net/ipv4/tcp_scalable.c has both values as constants.
_SCALABLE = {
    "a": Parameter("net.ipv4.tcp_scalable_a_ppm", _PPM, 1, _PPM, 10_000, "increase for each segment acknowledged"),
    "b": Parameter("net.ipv4.tcp_scalable_b_ppm", _PPM, 1, _PPM - 1, 125_000, "share given up on a loss"),
}

CCAS: Mapping[str, Cca] = {
    cca.name: cca
    for cca in (
        Cca("reno", "RFC 5681, RFC 6582"),
        Cca("cubic", "RFC 9438"),
        Cca("bic", "Xu, Harfoush, Rhee, INFOCOM 2004"),
        Cca("westwood", "Mascolo et al., MobiCom 2001"),
        Cca("htcp", "Leith, Shorten, PFLDnet 2004"),
        Cca("highspeed", "RFC 3649"),
        Cca("hybla", "Caini, Firrincieli, IJSCN 2004"),
        Cca("vegas", "Brakmo, Peterson, JSAC 1995"),
        Cca("scalable", "Kelly, CCR 2003", _SCALABLE),
        Cca("lp", "Kuzmanovic, Knightly, INFOCOM 2003"),
        Cca("veno", "Fu, Liew, JSAC 2003"),
        Cca("yeah", "Baiocchi et al., PFLDnet 2007"),
        Cca("illinois", "Liu, Basar, Srikant, VALUETOOLS 2006"),
        Cca("dctcp", "RFC 8257"),
        Cca("bbr", "Cardwell et al., ACM Queue 2016"),
    )
}

PARAMETER_SYSCTLS: frozenset[str] = frozenset(
    parameter.sysctl for cca in CCAS.values() for parameter in cca.parameters.values()
)


def parameter_sysctls(cca: str, given: Mapping[str, float]) -> dict[str, str]:
    """The sysctls of an algorithm, defaults included, so that no run depends on what a kernel was left with.

    ``given`` holds values in the manifest's units that were checked against the ranges before.
    """
    return {
        parameter.sysctl: str(int(parameter.scaled(given[name])) if name in given else parameter.default)
        for name, parameter in CCAS[cca].parameters.items()
    }


def plain(number: float) -> str:
    """A decimal text without an exponent or trailing zeros: 1e-06 gives 0.000001."""
    return f"{number:.9f}".rstrip("0").rstrip(".")
