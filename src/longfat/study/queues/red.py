# SPDX-License-Identifier: Apache-2.0
"""RED: conversion from packets in a manifest to bytes of whole frames in ``tc``, within the kernel's limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from longfat.spec.runspec import Queue, Scalar
from longfat.study.queues.kind import QueueKind
from longfat.study.queues.limit import Place
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding

PROBABILITY_SLACK = 1e-6
FURTHER_SWITCHES = ("harddrop", "adaptive", "nodrop")  # of tc-red(8), never used
_AVERAGE_BITS = 32  # red_check_params() in include/net/red.h: thresholds times 2^W must fit


class Red(QueueKind):
    """Random early detection at a bottleneck; lengths are in packets of the links' MTU."""

    examples: ClassVar[tuple[str, ...]] = ("{kind: red, limit: 100, min: 10, max: 30, probability: 10 %, ecn: false}",)

    name: ClassVar[str] = "red"
    counts_packets: ClassVar[bool] = False
    draws: ClassVar[bool] = True

    kind: Literal["red"] = Field(description="random early detection, tc-red(8)")
    limit: f.Count = Field(description="packets it holds")
    min: f.Count = Field(description="average length in packets from which packets are marked or dropped")
    max: f.Count = Field(description="average length in packets from which every packet is marked or dropped")
    probability: f.Share = Field(description="probability of a mark or drop just below `max`")
    burst: f.Count | None = Field(
        default=None,
        description="burst in packets that leaves the average below `min`, which sets its weight (default: a third of "
        "max and twice min, tc-red(8))",
    )
    ecn: f.Switch = Field(description="mark packets with ECN instead of dropping them")
    gentle: f.Switch = Field(
        default=False,
        description="let the probability rise to 1 between `max` and twice `max`, which only simulators can (default "
        "false)",
    )

    @model_validator(mode="after")
    def _check_thresholds(self) -> Red:
        if not self.min < self.max <= self.limit:
            raise f.fault(f"min {self.min}, max {self.max} and limit {self.limit} do not ascend")
        if self.burst is not None and self.burst < self.min:
            raise f.fault(f"burst {self.burst} is below min {self.min}: no weight of the average has this effect")
        return self

    def to_run(self, place: Place) -> Queue:
        """Return the queue as ``tc`` takes it; a packet is as long as the link's rate counts it."""
        frame = place.frame_bytes
        # The formula of tc-red(8), rounded up: a value rounded down may have no weight.
        burst = self.burst or -(-(2 * self.min + self.max) // 3)
        parameters: dict[str, Scalar] = {
            "min": self.min * frame,
            "max": self.max * frame,
            "probability": self.probability.value / 1_000_000,
            "avpkt": frame,
            "burst": burst,
            "bandwidth": f"{place.rate.value}bit",
        }
        parameters |= {"ecn": True} if self.ecn else {}
        parameters |= {"gentle": True} if self.gentle else {}
        return Queue("red", None, self.limit * frame, parameters)

    def findings(self, place: Place) -> Iterator[Finding]:
        """Yield thresholds and weights that the kernel cannot represent."""
        message = _kernel_fault(self.to_run(place))
        if message:
            yield Finding((), message, "give a smaller burst, or smaller thresholds")

    @classmethod
    def misses(cls, name: str, queue: Queue, found: Mapping[str, Any]) -> Iterator[str]:
        """Yield settings that did not read back as declared; the kernel keeps 32 bits of the probability."""
        for key in ("min", "max"):
            if found.get(key) != queue.parameters[key]:
                yield f"{key} of {name} is {found.get(key)} bytes, declared {queue.parameters[key]} bytes"
        probability, declared = found.get("probability"), float(queue.parameters["probability"])
        if probability is None or abs(probability - declared) > PROBABILITY_SLACK:
            yield f"probability of {name} is {probability}, declared {declared:g}"
        if found.get("ewma") != queue.red_weight_log:
            yield f"weight of {name} is 2^-{found.get('ewma')}, declared 2^-{queue.red_weight_log}"
        for key in ("ecn", "gentle", *FURTHER_SWITCHES):
            if found.get(key, False) != (queue.parameters.get(key) is True):
                yield f"{key} of {name} is {found.get(key, False)}, declared {queue.parameters.get(key) is True}"


def _kernel_fault(queue: Queue) -> str | None:
    """Return the reason why a kernel refuses the queue, or None."""
    try:
        weight = queue.red_weight_log
    except ValueError as error:
        return str(error)
    size = int(queue.parameters["max"])
    if size.bit_length() + weight >= _AVERAGE_BITS:
        bits = f"{size.bit_length()} bits of max = {size} bytes and {weight} of the weight 2^-{weight}"
        return f"{bits} are {_AVERAGE_BITS} or more, but the kernel has room for fewer"
    return None
