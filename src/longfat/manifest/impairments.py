# SPDX-License-Identifier: Apache-2.0
"""What a path does to packets without a queue: random loss and jitter, as a manifest words them.

Owns their keys, their checks, and what a run is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from longfat.manifest import fields as f
from longfat.manifest.closed import Closed
from longfat.manifest.names import Finding
from longfat.runspec import Bursts as RunBursts
from longfat.runspec import Impairment
from longfat.units import Duration, Ratio

ShareFromZero = Annotated[Ratio, f.Within("0 %", "100 %")]


class Bursts(Closed):
    """Losses that come in bursts: the chain of Gilbert and Elliott, with two states."""

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


class Impaired(Closed):
    """A path whose delay element may lose packets and vary its delay."""

    loss: Loss | None = Field(
        default=None,
        description="share of the packets towards the receivers that is lost, each by itself; or a mapping, for losses "
        "that come in bursts (default: none)",
    )
    reverse_loss: Loss | None = Field(
        default=None, description="the same for packets towards the senders (default: none)"
    )
    jitter: f.Delay | None = Field(
        default=None,
        description="by how much the delay towards the receivers varies up and down, uniformly, packet by packet: they "
        "may overtake each other (default: not at all)",
    )

    @property
    def is_impaired(self) -> bool:
        """Whether the path has a delay element that draws; a loss of 0 % counts."""
        return any(one is not None for one in (self.loss, self.reverse_loss, self.jitter))

    @property
    def forward(self) -> Impairment | None:
        """What happens to packets towards the receivers."""
        return _impairment(self.loss, self.jitter)

    @property
    def backward(self) -> Impairment | None:
        """What happens to packets towards the senders."""
        return _impairment(self.reverse_loss, None)


def impairment_findings(topology: Impaired, forward_us: int) -> Iterator[Finding]:
    """A delay that would be less than nothing at times; ``forward_us`` is that towards the receivers."""
    if topology.jitter and topology.jitter.value > forward_us:
        message = f"{topology.jitter} is more than the delay of {Duration(forward_us)} towards the receivers"
        yield Finding(("topology", "jitter"), message, "a smaller jitter, or delay_placement: forward")


def _impairment(loss: Any, jitter: Duration | None) -> Impairment | None:
    if loss is None and jitter is None:
        return None
    varied = jitter.value if jitter else 0
    if isinstance(loss, Bursts):
        chain = RunBursts(*(one.value for one in (loss.enter, loss.leave, loss.in_burst, loss.between)))
        return Impairment(bursts=chain, jitter_us=varied)
    return Impairment(loss.value if loss else 0, jitter_us=varied)
