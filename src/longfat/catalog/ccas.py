# SPDX-License-Identifier: Apache-2.0
"""The kernel's congestion controls and the parameters that can be set for each network namespace.

Plain data with the one pure function that turns parameters into sysctls; whether a kernel offers an
algorithm is checked when it runs, not here. Ranges and defaults come from the kernel's patches, kernels/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

Value = float | str
"""A parameter in a manifest: a number, or one of the parameter's words."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of an algorithm: its sysctl, with range and default in the sysctl's own units.

    In a manifest it is a number, of which 1 is ``per_unit`` in the sysctl. One with ``words`` is a choice
    among them; the sysctl then counts them from 0.
    """

    sysctl: str
    per_unit: int
    minimum: int
    maximum: int
    default: int
    meaning: str
    words: tuple[str, ...] = ()

    def scaled(self, value: Value) -> Decimal:
        """``value`` in the sysctl's units, exactly as written: 0.02 gives 20000 parts per million.

        Raises ValueError for a word that is not among the parameter's own.
        """
        return Decimal(self.words.index(value)) if isinstance(value, str) else Decimal(repr(value)) * self.per_unit

    @property
    def range_text(self) -> str:
        """The values that a manifest may give: the words, or the range in its units, ends included."""
        if self.words:
            return ", ".join(self.words)
        return f"{plain(self.minimum / self.per_unit)} to {plain(self.maximum / self.per_unit)}"

    @property
    def default_text(self) -> str:
        """The default as a manifest would word it."""
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
        """All parameters that a manifest may give, by name: its own, then those of the stack."""
        return {**self.parameters, **STACK_PARAMETERS}

    def sysctls(self, given: Mapping[str, Value]) -> dict[str, str]:
        """The sysctls of parameters, its own with defaults: no run depends on values that an earlier run has left.

        ``given`` holds values in the manifest's wording; they were checked against the ranges before.
        """
        return {
            parameter.sysctl: str(int(parameter.scaled(given[name])) if name in given else parameter.default)
            for name, parameter in self.allowed.items()
            if name not in STACK_PARAMETERS or given.get(name, parameter.words[0]) != parameter.words[0]
        }


_PPM = 1_000_000
_PPB = 1_000_000_000
_MILLI = 1_000


def _choice(sysctl: str, words: tuple[str, ...], meaning: str) -> Parameter:
    """A parameter of which the first word is the default."""
    return Parameter(sysctl, 1, 0, len(words) - 1, 0, meaning, words)


_RENO = {
    "a": Parameter("net.ipv4.tcp_reno.a_ppm", _PPM, 1, 1000 * _PPM, _PPM, "segments gained for each round trip"),
    "b": Parameter("net.ipv4.tcp_reno.b_ppm", _PPM, 1, _PPM - 1, 500_000, "share given up on a loss"),
}
_SCALABLE = {
    "a": Parameter(
        "net.ipv4.tcp_scalable.a_ppm", _PPM, 1, _PPM, 10_000, "segments gained for each segment acknowledged"
    ),
    "b": Parameter("net.ipv4.tcp_scalable.b_ppm", _PPM, 1, _PPM - 1, 125_000, "share given up on a loss"),
    "lwnd": Parameter(
        "net.ipv4.tcp_scalable.lwnd",
        *(1, 0, 1_000_000, 0),
        "window in segments up to which Reno's rules apply; 0: none, and growth is never below Reno's",
    ),
}
_HIGHSPEED = {
    "low_window": Parameter(
        "net.ipv4.tcp_highspeed.low_window", *(1, 1, 1_000_000, 38), "Low_Window in segments: Reno's rules up to there"
    ),
    "high_window": Parameter(
        "net.ipv4.tcp_highspeed.high_window_milli",
        *(_MILLI, 1, 2_000_000_000, 83_000_000),
        "High_Window in segments, the window at a loss rate of High_P",
    ),
    "high_p": Parameter("net.ipv4.tcp_highspeed.high_p_ppb", *(_PPB, 1, _PPM, 100), "High_P, a packet loss rate"),
    "high_decrease": Parameter(
        "net.ipv4.tcp_highspeed.high_decrease_ppm",
        *(_PPM, 1, 500_000, 100_000),
        "High_Decrease: share given up on a loss at High_Window",
    ),
    "current_window": Parameter(
        "net.ipv4.tcp_highspeed.current_window",
        *(1, 0, 1, 0),
        "1: a loss takes the share of the present window, also out of slow start; 0: as mainline",
    ),
    "count_segments": Parameter(
        "net.ipv4.tcp_highspeed.count_segments",
        *(1, 0, 1, 0),
        "1: growth counts acknowledged segments; 0: acknowledgments, as mainline",
    ),
}
_FAST = {
    "alpha": Parameter(
        "net.ipv4.tcp_fast.alpha", 1, 1, 100_000, 200, "packets that a flow keeps queued in equilibrium"
    ),
    "gamma": Parameter(
        "net.ipv4.tcp_fast.gamma_ppm", _PPM, 1, _PPM, 500_000, "share of the way to equilibrium that an update goes"
    ),
}
_HSTCP_LP = {
    "delta": Parameter(
        "net.ipv4.tcp_hstcp_lp.delta_ppm",
        *(_PPM, 1, _PPM - 1, 150_000),
        "share of the range of one-way delays above which it sees congestion",
    ),
    "inference_rtts": Parameter(
        "net.ipv4.tcp_hstcp_lp.inference_rtts", *(1, 1, 100, 3), "round trips of the inference phase"
    ),
    "tick_ms": Parameter(
        "net.ipv4.tcp_hstcp_lp.tick_ms",
        *(1, 0, 1000, 0),
        "tick in ms of the clocks that delays are read from, as Linux 2.4's had 10; 0: that of timestamps, 1 ms",
    ),
}
_COMPOUND = {
    "alpha": Parameter(
        "net.ipv4.tcp_compound.alpha_ppm", *(_PPM, 1, 10 * _PPM, 125_000), "factor of the delay window's growth"
    ),
    "beta": Parameter("net.ipv4.tcp_compound.beta_ppm", *(_PPM, 1, _PPM - 1, 500_000), "share given up on a loss"),
    "k": Parameter("net.ipv4.tcp_compound.k_ppm", *(_PPM, 0, _PPM, 750_000), "exponent of the delay window's growth"),
    "eta": Parameter(
        "net.ipv4.tcp_compound.eta_ppm",
        *(_PPM, 1, 10 * _PPM, _PPM),
        "segments that the delay window gives up for each one queued",
    ),
    "gamma": Parameter(
        "net.ipv4.tcp_compound.gamma",
        *(1, 1, 100_000, 30),
        "packets queued from which the delay window shrinks; the most that auto-tuning allows",
    ),
    "gamma_low": Parameter(
        "net.ipv4.tcp_compound.gamma_low",
        *(1, 1, 100_000, 5),
        "packets queued from which burst control acts; the least that auto-tuning allows",
    ),
    "low_window": Parameter(
        "net.ipv4.tcp_compound.low_window", *(1, 0, 1_000_000, 38), "window in segments below which it is Reno"
    ),
    "burst": _choice(
        "net.ipv4.tcp_compound.burst",
        ("plain", "muted", "partial"),
        "growth of the delay window between gamma_low and gamma: full, none, or up to partial_increment",
    ),
    "partial_increment": Parameter(
        "net.ipv4.tcp_compound.partial_increment",
        *(1, 0, 10_000, 1),
        "segments of growth for each round trip that burst: partial allows",
    ),
    "autotune": _choice(
        "net.ipv4.tcp_compound.autotune",
        ("off", "diffwnd", "loss_window"),
        "what gamma follows: nothing, the backlog before a loss, or the backlog of the loss window alone",
    ),
    "lambda": Parameter(
        "net.ipv4.tcp_compound.lambda_ppm", *(_PPM, 1, _PPM, 800_000), "weight of the newest backlog in auto-tuning"
    ),
}

CCAS: Mapping[str, Cca] = {
    cca.name: cca
    for cca in (
        Cca("reno", "RFC 5681, RFC 6582", _RENO),
        Cca("cubic", "RFC 9438"),
        Cca("bic", "Xu, Harfoush, Rhee, INFOCOM 2004"),
        Cca("westwood", "Mascolo et al., MobiCom 2001"),
        Cca("htcp", "Leith, Shorten, PFLDnet 2004"),
        Cca("highspeed", "RFC 3649", _HIGHSPEED),
        Cca("hybla", "Caini, Firrincieli, IJSCN 2004"),
        Cca("vegas", "Brakmo, Peterson, JSAC 1995"),
        Cca("scalable", "Kelly, CCR 2003", _SCALABLE),
        Cca("lp", "Kuzmanovic, Knightly, INFOCOM 2003"),
        Cca("veno", "Fu, Liew, JSAC 2003"),
        Cca("yeah", "Baiocchi et al., PFLDnet 2007"),
        Cca("illinois", "Liu, Basar, Srikant, VALUETOOLS 2006"),
        Cca("dctcp", "RFC 8257"),
        Cca("bbr", "Cardwell et al., ACM Queue 2016", draws=True),
        Cca("fast", "Jin, Wei, Low, INFOCOM 2004", _FAST),
        Cca("hstcp_lp", "Kuzmanovic, Knightly, Cottrell, PFLDnet 2004", _HSTCP_LP),
        Cca("compound", "Tan, Song, Zhang, Sridharan, INFOCOM 2006", _COMPOUND),
    )
}

STACK_PARAMETERS: Mapping[str, Parameter] = {
    "local_congestion": _choice(
        "net.ipv4.tcp_local_congestion",
        ("as_loss", "half", "ignored"),
        "what the window does when the sender's own queue is full",
    )
}
"""What an algorithm's patch may have changed of the stack beside it, by words of which the first changes nothing."""

PARAMETER_SYSCTLS: frozenset[str] = frozenset(
    parameter.sysctl for cca in CCAS.values() for parameter in cca.parameters.values()
)


def plain(number: float) -> str:
    """A decimal text without an exponent or trailing zeros: 1e-06 gives 0.000001."""
    text = f"{Decimal(repr(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
