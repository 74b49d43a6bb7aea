# SPDX-License-Identifier: Apache-2.0
"""Random loss, jitter and reordering of a path. Owns their keys, their checks, and their form in a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from longfat.spec.runspec import Bursts as RunBursts
from longfat.spec.runspec import Impairment
from longfat.spec.units import Duration, Ratio
from longfat.study.changing import Changing
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding

ShareFromZero = Annotated[Ratio, f.Within("0 %", "100 %")]


class Bursts(f.Closed):
    """Losses in bursts: the Gilbert-Elliott model, with two states."""

    examples: ClassVar[tuple[str, ...]] = ("{enter: 0.1 %, leave: 20 %, in_burst: 80 %}",)

    enter: f.Share = Field(description="probability before a packet that a burst begins")
    leave: f.Share = Field(description="probability before a packet that the burst ends")
    in_burst: ShareFromZero = Field(
        default=Ratio(1_000_000), description="share of packets lost in a burst (default 100 %)"
    )
    between: ShareFromZero = Field(default=Ratio(0), description="share of packets lost between bursts (default 0 %)")


Loss = Annotated[
    Annotated[ShareFromZero, Tag("<share>")] | Annotated[Bursts, Tag("<bursts>")],
    Discriminator(lambda given: "<bursts>" if isinstance(given, dict | Bursts) else "<share>"),
]


class Impaired(Changing):
    """A path whose delay element may lose packets and vary its delay."""

    loss: Loss | None = Field(
        default=None,
        description="share of the packets towards the receivers that is lost, independently; or a mapping, for losses"
        " in bursts (default: none)",
    )
    reverse_loss: Loss | None = Field(
        default=None, description="the same for packets towards the senders (default: none)"
    )
    jitter: f.Delay | None = Field(
        default=None,
        description="largest deviation of the delay towards the receivers, uniform and drawn for each packet: packets"
        " may overtake each other (default: none)",
    )
    reverse_jitter: f.Delay | None = Field(
        default=None, description="the same for packets towards the senders (default: not at all)"
    )
    jitter_order: Literal["free", "kept"] = Field(
        default="free", description="kept: a packet that jitter would let overtake waits for the one before it"
    )
    overtaking: f.Share | None = Field(
        default=None,
        description="share of the packets towards the receivers that skip the delay, and so overtake the packets under"
        " way (default: none)",
    )
    reverse_overtaking: f.Share | None = Field(
        default=None, description="the same for packets towards the senders (default: none)"
    )

    @property
    def is_impaired(self) -> bool:
        """Whether the path has random losses or delays; a loss of 0 % counts."""
        forward = self.loss, self.jitter, self.overtaking
        return any(
            one is not None for one in (*forward, self.reverse_loss, self.reverse_jitter, self.reverse_overtaking)
        )

    @property
    def forward(self) -> Impairment | None:
        """The impairment towards the receivers."""
        return self._impairment(self.loss, self.jitter, self.overtaking)

    @property
    def backward(self) -> Impairment | None:
        """The impairment towards the senders."""
        return self._impairment(self.reverse_loss, self.reverse_jitter, self.reverse_overtaking)

    def _impairment(self, loss: Any, jitter: Duration | None, overtaking: Ratio | None) -> Impairment | None:
        if loss is None and jitter is None and overtaking is None:
            return None
        found = Impairment(
            jitter_us=jitter.value if jitter else 0,
            overtaking_ppm=overtaking.value if overtaking else 0,
            in_order=self.jitter_order == "kept" and jitter is not None,
        )
        if isinstance(loss, Bursts):
            chain = RunBursts(*(one.value for one in (loss.enter, loss.leave, loss.in_burst, loss.between)))
            return replace(found, bursts=chain)
        return replace(found, loss_ppm=loss.value if loss else 0)


def impairment_findings(topology: Impaired, forward_us: int, reverse_us: int) -> Iterator[Finding]:
    """Yield jitter that exceeds the delay, and keys that exclude each other.

    ``forward_us`` is the delay towards the receivers, ``reverse_us`` towards the senders.
    """
    ways = ("jitter", forward_us, "receivers", "forward"), ("reverse_jitter", reverse_us, "senders", "reverse")
    for key, delay_us, where, placement in ways:
        jitter = getattr(topology, key)
        if jitter and jitter.value > delay_us:
            message = f"{jitter} is more than the delay of {Duration(delay_us)} towards the {where}"
            yield Finding(("topology", key), message, f"a smaller jitter, or delay_placement: {placement}")
    for key, delay_us, where, _ in (("overtaking", *ways[0][1:]), ("reverse_overtaking", *ways[1][1:])):
        if getattr(topology, key) and not delay_us:
            yield Finding(("topology", key), f"has no effect: the path has no delay towards the {where}")
        if getattr(topology, key) and topology.jitter_order == "kept":
            yield Finding(("topology", key), "cannot be combined with jitter_order: kept")
