# SPDX-License-Identifier: Apache-2.0
"""AQMs and fair queues: the keys of each, with Linux's defaults.

A setting's key is its name in ``longfat.guest.options``; a setting without a value is left to the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from longfat.spec.runspec import Queue, Scalar
from longfat.spec.units import Duration, Ratio, Size
from longfat.study.queues.kind import QueueKind
from longfat.study.queues.limit import Limit, Place
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding

LONGEST_WAIT_US = 60_000_000
Wait = Annotated[Duration, f.Within("1 us", "60 s")]
Tick = Annotated[Duration, f.Within("1 ms", "10 s")]
Memory = Annotated[Size, f.Within("4 KiB", "1 GiB")]
Whole = Annotated[int, Field(strict=True, ge=0, le=1_000_000)]

_LIMIT = "limit: packets, or a text such as 150 kB, 30 ms or 1.5 bdp (default {} packets)"
_TARGET = "target of the queueing delay (default {})"
_INTERVAL = "time in which the queueing delay must fall below the target at least once (default 100 ms)"
_ECN = "mark packets with ECN instead of dropping them (default {})"
_FLOWS = "flows that it distinguishes, by their hash (default 1024)"
_QUANTUM = "bytes that a flow sends in its turn (default: a full packet with Ethernet's header)"
_STEP = "mark every ECN packet that has waited longer (default: none)"
_MEMORY = "memory of its packets' buffers (default 32 MiB)"


class Codel(QueueKind):
    """Controlled delay: one queue, whose minimum delay is kept at a target."""

    name: ClassVar[str] = "codel"
    examples: ClassVar[tuple[str, ...]] = ("{kind: codel, limit: 1000, target: 5 ms, interval: 100 ms, ecn: true}",)

    kind: Literal["codel"] = Field(description="controlled delay, RFC 8289, tc-codel(8)")
    limit: Limit = Field(default=1000, description=_LIMIT.format(1000))
    target: Wait = Field(default=Duration(5_000), description=_TARGET.format("5 ms"))
    interval: Wait = Field(default=Duration(100_000), description=_INTERVAL)
    ecn: f.Switch = Field(default=False, description=_ECN.format("false"))
    ce_threshold: Wait | None = Field(default=None, description=_STEP)

    @model_validator(mode="after")
    def _check_times(self) -> Codel:
        if self.target >= self.interval:
            raise f.fault(f"target {self.target} is not below interval {self.interval}")
        return self


class FqCodel(Codel):
    """A CoDel for each flow; flows in turn, new ones first."""

    name: ClassVar[str] = "fq_codel"
    examples: ClassVar[tuple[str, ...]] = ("{kind: fq_codel, limit: 1000, flows: 256}",)
    draws: ClassVar[bool] = True

    kind: Literal["fq_codel"] = Field(description="a CoDel for each flow, RFC 8290, tc-fq_codel(8)")  # type: ignore[assignment]
    limit: Limit = Field(default=10240, description=_LIMIT.format(10240))
    ecn: f.Switch = Field(default=True, description=_ECN.format("true"))
    flows: Annotated[int, Field(strict=True, ge=1, le=65_536)] = Field(default=1024, description=_FLOWS)
    quantum: f.Count | None = Field(default=None, description=_QUANTUM)
    memory_limit: Memory = Field(default=Size(32 << 20), description=_MEMORY)


class Fq(QueueKind):
    """Fair queueing: flows in turn, each with its own FIFO."""

    name: ClassVar[str] = "fq"
    examples: ClassVar[tuple[str, ...]] = ("{kind: fq, limit: 1000, flow_limit: 50}",)
    draws: ClassVar[bool] = True

    kind: Literal["fq"] = Field(description="flows in turn, tc-fq(8)")
    limit: Limit = Field(default=10000, description=_LIMIT.format(10000))
    flow_limit: f.Count = Field(default=100, description="packets of one flow that it holds (default 100)")
    quantum: f.Count | None = Field(default=None, description=_QUANTUM)
    pacing: f.Switch = Field(default=True, description="keep to the rate that a local socket requests (default true)")


class Pie(QueueKind):
    """Proportional integral controller: the drop probability follows the queueing delay and its change."""

    name: ClassVar[str] = "pie"
    examples: ClassVar[tuple[str, ...]] = ("{kind: pie, limit: 1000, target: 15 ms}",)
    draws: ClassVar[bool] = True

    kind: Literal["pie"] = Field(description="proportional integral controller, RFC 8033, tc-pie(8)")
    limit: Limit = Field(default=1000, description=_LIMIT.format(1000))
    target: Wait = Field(default=Duration(15_000), description=_TARGET.format("15 ms"))
    tupdate: Tick = Field(
        default=Duration(15_000),
        description="time between two updates of the probability, a multiple of 1 ms, and of 10 ms on a kernel with "
        "HZ=100 (default 15 ms)",
    )
    alpha: Annotated[int, Field(strict=True, ge=0, le=32)] = Field(
        default=2, description="weight of the queueing delay, in 16ths of 1/s (default 2)"
    )
    beta: Annotated[int, Field(strict=True, ge=0, le=32)] = Field(
        default=20, description="weight of the delay's change, in 16ths of 1/s (default 20)"
    )
    ecn: f.Switch = Field(default=False, description=_ECN.format("false"))
    bytemode: f.Switch = Field(default=False, description="short packets are dropped less often (default false)")

    @model_validator(mode="after")
    def _check_ticks(self) -> Pie:
        if self.tupdate.value % 1_000:
            raise f.fault(f"tupdate {self.tupdate} is not a multiple of 1 ms, the tick of the guest's kernel")
        return self


class FqPie(Pie):
    """A PIE for each flow; flows in turn."""

    name: ClassVar[str] = "fq_pie"
    examples: ClassVar[tuple[str, ...]] = ("{kind: fq_pie, limit: 1000, target: 15 ms}",)

    kind: Literal["fq_pie"] = Field(description="a PIE for each flow, tc-fq_pie(8)")  # type: ignore[assignment]
    limit: Limit = Field(default=10240, description=_LIMIT.format(10240))
    flows: Annotated[int, Field(strict=True, ge=1, le=65_536)] = Field(default=1024, description=_FLOWS)
    quantum: f.Count | None = Field(default=None, description=_QUANTUM)
    memory_limit: Memory = Field(default=Size(32 << 20), description=_MEMORY)
    ecn_prob: Annotated[Ratio, f.Within("1 %", "100 %")] = Field(
        default=Ratio(100_000), description="probability up to which packets are marked, whole percents (default 10 %)"
    )


class Cake(QueueKind):
    """CAKE (Common Applications Kept Enhanced) without its shaper: the wire has the rate."""

    name: ClassVar[str] = "cake"
    examples: ClassVar[tuple[str, ...]] = ("{kind: cake, limit: 4 MiB, flowmode: flows}",)
    counts_packets: ClassVar[bool] = False
    draws: ClassVar[bool] = True
    words: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "diffserv": {"diffserv3": 0, "diffserv4": 1, "diffserv8": 2, "besteffort": 3, "precedence": 4},
        "flowmode": {
            "flowblind": 0,
            "srchost": 1,
            "dsthost": 2,
            "hosts": 3,
            "flows": 4,
            "dual-srchost": 5,
            "dual-dsthost": 6,
            "triple-isolate": 7,
        },
        "ack_filter": {"off": 0, "on": 1, "aggressive": 2},
    }

    kind: Literal["cake"] = Field(description="tc-cake(8); it always marks ECN packets")
    limit: Memory = Field(default=Size(32 << 20), description="memory of its packets' buffers (default 32 MiB)")
    rtt: Wait = Field(default=Duration(100_000), description="interval of its CoDel (default 100 ms)")
    target: Wait = Field(default=Duration(5_000), description=_TARGET.format("5 ms"))
    diffserv: Literal["besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"] = Field(
        default="besteffort", description="classes by the packets' DSCP (default besteffort: one)"
    )
    flowmode: Literal[
        "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"
    ] = Field(default="triple-isolate", description="hosts or flows between which it is fair (default triple-isolate)")
    ack_filter: Literal["off", "on", "aggressive"] = Field(
        default="off", description="drop acknowledgments that a later one repeats (default off)"
    )

    def to_run(self, place: Place) -> Queue:
        """Return the queue of a run, whose limit is memory instead of packets."""
        return Queue(self.name, None, None, self.parameters() | {"memory_limit": self.limit.value})


class Sfq(QueueKind):
    """Stochastic fairness queueing: a FIFO for each hash of flows, served in turn."""

    name: ClassVar[str] = "sfq"
    examples: ClassVar[tuple[str, ...]] = ("{kind: sfq, limit: 127, depth: 20}",)
    draws: ClassVar[bool] = True

    kind: Literal["sfq"] = Field(description="stochastic fairness, tc-sfq(8)")
    limit: Limit = Field(default=127, description=_LIMIT.format(127))
    flows: Annotated[int, Field(strict=True, ge=2, le=65_408)] = Field(
        default=127, description="flows that may wait at a time (default 127)"
    )
    depth: Annotated[int, Field(strict=True, ge=1, le=127)] = Field(
        default=127, description="packets of one flow that it holds (default 127)"
    )
    divisor: Literal[256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536] = Field(
        default=1024, description="values of the hash (default 1024)"
    )
    perturb: Whole = Field(default=0, description="seconds between two changes of the hash (default 0: none)")
    headdrop: f.Switch = Field(default=False, description="drop from the head of a flow's queue (default false)")

    def findings(self, place: Place) -> Iterator[Finding]:
        """Yield numbers that the kernel would silently reduce."""
        most, packets = self.flows * self.depth, place.packets_in(self.limit)
        if packets > most:
            message = f"{packets} packets are more than {self.flows} flows of {self.depth} packets, {most}, can be"
            yield Finding(("limit",), message, "give more flows")
        if self.flows > min(packets, self.divisor):
            message = f"{self.flows} flows are more than {packets} packets or {self.divisor} values of the hash can be"
            yield Finding(("flows",), message, "give fewer flows")


class DualPi2(QueueKind):
    """Two queues: the low-latency queue marks above a step, and by the PI controller of the other queue."""

    name: ClassVar[str] = "dualpi2"
    examples: ClassVar[tuple[str, ...]] = ("{kind: dualpi2, limit: 1000, target: 15 ms, step_thresh: 1 ms}",)
    draws: ClassVar[bool] = True
    words: ClassVar[Mapping[str, Mapping[str, int]]] = {"ecn_mask": {"l4s_ect": 1, "any_ect": 3}}
    slack: ClassVar[Mapping[str, int]] = {"alpha": 1, "beta": 1}

    kind: Literal["dualpi2"] = Field(description="dual queue of RFC 9332; kernel linux-7.3 has it")
    limit: Limit = Field(default=10000, description=_LIMIT.format(10000))
    target: Wait = Field(default=Duration(15_000), description=_TARGET.format("15 ms"))
    tupdate: Wait = Field(default=Duration(16_000), description="time between two updates of the probability (16 ms)")
    alpha: Whole = Field(default=41, description="weight of the queueing delay, in 256ths of 1/s (default 41)")
    beta: Whole = Field(default=819, description="weight of the delay's change, in 256ths of 1/s (default 819)")
    step_thresh: Annotated[Duration, f.Within("1 us", "4 s")] = Field(
        default=Duration(1_000), description="delay above which the low-latency queue marks every packet (default 1 ms)"
    )
    min_qlen_step: Whole = Field(default=0, description="packets of that queue below which it does not (default 0)")
    coupling: Annotated[int, Field(strict=True, ge=1, le=255)] = Field(
        default=2,
        description="factor between the mark probability and the square root of the other queue's (default 2)",
    )
    c_protection: Annotated[Ratio, f.Within("0 %", "100 %")] = Field(
        default=Ratio(100_000), description="share of the rate that the other queue is guaranteed (default 10 %)"
    )
    drop_overload: f.Switch = Field(
        default=True, description="drop when marks do not help, else overflow (default true)"
    )
    drop_early: f.Switch = Field(
        default=False, description="drop packets at their arrival instead of at their departure (default false)"
    )
    ecn_mask: Literal["l4s_ect", "any_ect"] = Field(
        default="l4s_ect", description="packets of the low-latency queue: those with ECT(1), or with any ECT (l4s_ect)"
    )


class Step(QueueKind):
    """A FIFO that marks every packet that has waited longer than a threshold, for DCTCP.

    In the kernel it is a CoDel whose own target is never reached.
    """

    name: ClassVar[str] = "step"
    examples: ClassVar[tuple[str, ...]] = ("{kind: step, limit: 1000, threshold: 0.2 bdp}",)

    kind: Literal["step"] = Field(description="marks at a step, RFC 8257 section 4.1")
    limit: Limit = Field(default=1000, description=_LIMIT.format(1000))
    threshold: Limit = Field(
        description="queue above which packets are marked: packets, or a text such as 30 kB, 300 us or 0.2 bdp"
    )

    def findings(self, place: Place) -> Iterator[Finding]:
        """Yield a threshold above the longest delay that the kernel can measure."""
        if (wait := Duration(place.us_in(self.threshold))) > Duration(LONGEST_WAIT_US):
            message = f"{self.threshold} is {wait} here; allowed: up to {Duration(LONGEST_WAIT_US)}"
            yield Finding(("threshold",), message)

    def to_run(self, place: Place) -> Queue:
        """Return the queue of a run, whose threshold is the time in which this amount of data leaves."""
        never = LONGEST_WAIT_US
        parameters: dict[str, Scalar] = {"target": never, "interval": never, "ecn": 1}
        return Queue(
            "codel", place.packets_in(self.limit), None, parameters | {"ce_threshold": place.us_in(self.threshold)}
        )


KINDS: tuple[type[QueueKind], ...] = (Codel, FqCodel, Fq, Pie, FqPie, Cake, Sfq, DualPi2, Step)
