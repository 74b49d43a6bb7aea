# SPDX-License-Identifier: Apache-2.0
"""The manifest reference, ``docs/manifest.md``, generated from the models and therefore never outdated.

Run as a module to print it. It must not state anything that the models and the catalogue do not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from longfat.catalog.ccas import CCAS, STACK_PARAMETERS
from longfat.catalog.offloads import OFFLOADS
from longfat.catalog.qdiscs import QDISCS
from longfat.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, STACKS, Setting
from longfat.catalog.web import WEB_MODELS
from longfat.manifest import axes, changing, graphs, impairments, kernels, models, thinning, unknowns
from longfat.manifest.algorithm import Algorithm
from longfat.manifest.examples import example
from longfat.queues import KINDS as QUEUES
from longfat.traffic import SECTIONS
from longfat.units import Duration, Quantity, Rate, Ratio, Size

_INTRODUCTION = """\
# The study manifest

<!-- Generated: python -m longfat.manifest.reference > docs/manifest.md -->

A study is one `study.yaml`. Every key is listed below; any other key is an error, and so is a key that
changes no run of the study. All errors of a file are reported at once, each with line, key, the given value
and the allowed values. YAML is used without aliases, tags and merge keys. `longfat check` also warns of
settings that are allowed but probably not intended: the queue of a switch that cannot fill, because the
hosts before it send no faster and have the longer queue.

`longfat new NAME` creates a first study; [the tutorial](own-study.md) continues from there.
`longfat plan NAME` prints the factors, the fixed settings, the exclusions with their reasons, and the cost;
with `--expanded`, every point in full.

A value with a dimension is a text with its unit. A bare number is refused, and so is a value that would
have to be rounded. In the lock, factor values that are quantities become plain numbers in base units.

Node names follow from the topology: senders are `client1`, `client2`, ...; a single receiver is `server`,
several are `server1`, `server2`, ... A profile only thins: it never adds a repetition or lengthens a flow.
`paper` is the manifest as written.

## Names, defaults and formulas

```yaml
algorithms: {reno: {cca: reno}}
paths:
  short: {kind: dumbbell, rate: 100 Mbit/s, rtt: 10 ms, senders: 1}
  long: {kind: dumbbell, rate: 100 Mbit/s, rtt: 170 ms, senders: 1}
stacks:
  reno: {streams: 1, txqueuelen: 100}
  p-tcp: {streams: 16, txqueuelen: 2000}
defaults:
  repetitions: 3
  flow: {from: client1, to: server, duration: 60 s}
experiments:
  - id: alone
    path: "${path}"
    topology: {bottleneck_queue: {limit: "${quarter}"}}
    hosts: {txqueuelen: "${stack.txqueuelen}"}
    flows: [{name: flow, algorithm: reno, streams: "${stack.streams}"}]
    sweep:
      product: {path: [short, long], stack: [reno, p-tcp]}
      derived: {quarter: round(path.rate * path.rtt / packet / 4)}
  - id: reverse
    like: alone
    topology: {reverse_queue: {limit: "${quarter}"}}
```

**Paths.** `path` names a network of `paths`. A `topology` next to it has only the keys in which the experiment
differs. Keys in a mapping such as `bottleneck_queue` replace those of the path one by one, unless the mapping
has a `kind`. Without `path`, `topology` is complete.

**References.** `${factor}` stands for one whole value in `path`, `topology`, `hosts`, `probes`, `drops`, `kernel`,
`clock_tolerance`, `phases` or any traffic of an experiment. Each factor of a sweep must be used. A factor's value
may be the name of a record of `paths` or `stacks`, or a record in the sweep itself, such as `{name: few, streams: 2}`.
Then `${factor.field}` is a field of that record, and `${factor}` its name. In lock and dataset the factor is
only the name. `${path.rtt}` is a field of the path that the experiment names, swept or not. A record needs
only the fields that are referred to.

**Derived values.** A formula has numbers, quantities such as `10 ms`, names, `+ - * /`, parentheses, `min`, `max`,
`round` (halves up), `floor` and `ceil`. Its names are factors, fields such as `path.rate`, the formulas above it,
and `packet`, the MTU of the experiment's links. Units are checked: a rate times a time is a size, a size over a
size is a number. The result is exact: a quantity that is not a whole number of base units is an error. `path` is
the named path, without the changes of `topology`. Derived values are not factors of the dataset.

**Inheritance.** `like` names an earlier experiment. Every key is taken from it except those given. `topology`,
`hosts` and `probes` replace its values key by key; `sweep: {}` or `drops: []` takes nothing. In the same way,
`defaults` apply to all experiments, and `defaults.flow` to every flow.

## Queues and impairments

```yaml
algorithms: {cubic: {cca: cubic}}
defaults: {flow: {from: client1, to: server, duration: 60 s}}
experiments:
  - id: queues
    topology:
      kind: dumbbell
      rate: 20 Mbit/s
      host_rate: 1 Gbit/s
      reverse_rate: 2 Mbit/s
      rtt: 40 ms
      senders: 2
      bottleneck_queue: {kind: "${queue}", limit: 4 MiB}
      reverse_queue: {limit: 1.5 bdp}
    flows: [{name: flow, count: 2, algorithm: cubic}]
    sweep: {product: {queue: [bfifo, codel, fq_codel, pie, cake]}}
  - id: radio
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, loss: "${loss}", jitter: 2 ms}
    flows: [{name: flow, algorithm: cubic}]
    sweep: {product: {loss: [0 %, 0.1 %, 1 %]}}
  - id: fading
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, loss: {enter: 0.1 %, leave: 20 %, in_burst: 80 %}}
    flows: [{name: flow, algorithm: cubic}]
```

**Queues.** A limit is a number of packets, a size, a time (`30 ms`) or a number of products of rate and round-trip
time (`1.5 bdp`). It counts full frames as the link does, so a queue of `1 bdp` takes one round-trip time to leave.
Every setting is read back from the kernel, and a run whose queue has another one does not count.

**Impairments.** `loss`, `jitter` and `overtaking` belong to the path's delay, behind the bottleneck, and are drawn
from the run's seed: repetitions differ, and each is the same on every machine.
[Virtual time](virtual-time.md#exact-and-drawn-quantities) describes where they are.

**Single hosts.** `hosts: {per_host: {client2: {sysctls: {net.ipv4.tcp_ecn: 1}}}}` turns ECN on at one sender alone. A
host's own settings count before those of all hosts, and the experiment's before the study's.

**Hosts that take time.** They take none, unless `hosts` has an `interrupt_moderation` or a `packet_time`, for packets
that arrive. Then a node `card1`, `card2`, ... stands before each such host.
The sender's wire draws a `processing_time` for each packet.

## Paths that change, and networks of any form

```yaml
algorithms: {cubic: {cca: cubic}}
hosts: {sysctls: {net.ipv4.tcp_ecn: 1}}
defaults: {flow: {from: client1, to: server, duration: 60 s}}
experiments:
  - id: handover
    topology:
      kind: dumbbell
      rate: 20 Mbit/s
      host_rate: 1 Gbit/s
      rtt: 40 ms
      senders: 1
      changes:
        - {at: 20 s, outage: 300 ms}
        - {at: 20.3 s, rate: 5 Mbit/s, rtt: 80 ms}
    flows: [{name: flow, algorithm: cubic}]
  - id: lot
    topology: {kind: parking_lot, bottlenecks: 3, rate: 20 Mbit/s, rtt: 60 ms}
    flows:
      - {name: long, algorithm: cubic}
      - {name: cross, count: 3, from: cross1, to: sink1, algorithm: cubic}
  - id: two-ways
    topology:
      kind: graph
      senders: [near, far]
      receivers: [home]
      routers: [core, mast]
      links:
        - {between: [near, core], rate: 1 Gbit/s, rtt: 2 ms}
        - {between: [far, core], rate: 1 Gbit/s, rtt: 200 ms}
        - {between: [core, mast], rate: 100 Mbit/s, rtt: 8 ms, queue: {kind: step, threshold: 300 us}}
        - {between: [mast, home], rate: 20 Mbit/s, reverse_rate: 2 Mbit/s, rtt: 30 ms, queue: {limit: 1 bdp}}
    flows:
      - {name: one, from: near, to: home, algorithm: cubic}
      - {name: two, from: far, to: home, algorithm: cubic}
```

**Changes.** Each gives `rate` or `rtt` a new value from its time on, counted from the start of the measurement, or
nothing leaves either way for the time of an `outage`. `rate` is that of the bottleneck alone, or of the whole link
where there is only one. Limits of queues stay what they were. Bits of a packet that have not left meet the new rate.

**Traces.** `trace: FILE` names a file beside `study.yaml` in the form that mahimahi's `mm-link` reads. Each line is
the millisecond in which one more packet may leave, and the last line is where it begins anew. A packet is one of 1500
bytes with its framing; of shorter ones more may leave. The file's digest and content are in the lock. `rate` stays
what products of rate and round-trip time count with. Both are
[exact](virtual-time.md#exact-and-drawn-quantities).

**Networks.** Packets take the way with the fewest links. In a `graph` each link has what a `delay` topology has, with
a queue at each end that is a router. Limits in products count with the longest round-trip time of the graph.
"""

_PARAMETERS = """\
A parameter is a key next to `cca`; a parameter that is left out has its default. It is set on the host that
sends: all flows of one algorithm from one host share its parameters, and flows from different hosts may differ
in them.

```yaml
algorithms:
  gentle: {cca: scalable, a: 0.01}
  eager: {cca: scalable, a: 0.05}
experiments:
  - id: two-to-one
    topology: {kind: dumbbell, rate: 1 Gbit/s, rtt: 30 ms, senders: 2}
    flows:
      - {name: f1, from: client1, to: server, algorithm: gentle, duration: 60 s}
      - {name: f2, from: client2, to: server, algorithm: eager, duration: 60 s}
```"""

_SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("study.yaml", models.Document),
    ("paper", models.Paper),
    ("kernels.NAME", kernels.Kernel),
    ("algorithms.NAME", Algorithm),
    ("hosts", models.Hosts),
    ("hosts.per_host.NAME", models.OneHost),
    ("unknowns.NAME", unknowns.Unknown),
    ("defaults", models.Defaults),
    ("experiments[]", models.Experiment),
    ("topology: direct", models.Direct),
    ("topology: delay", models.Delay),
    ("topology: dumbbell", models.Dumbbell),
    ("topology: parking_lot", graphs.ParkingLot),
    ("topology: graph", graphs.Graph),
    ("topology.links[]", graphs.GraphLink),
    ("topology.policer", graphs.Policer),
    ("topology.changes[]", changing.Change),
    ("topology.loss: bursts", impairments.Bursts),
    *((f"topology.bottleneck_queue: {name}", kind) for name, kind in QUEUES.items()),
    *((f"{name}[]", section.model) for name, section in SECTIONS.items()),
    ("sweep", axes.Sweep),
    ("sweep.product.FACTOR[]: record", axes.Record),
    ("sweep.exclude[]", axes.Exclusion),
    ("probes", models.Probes),
    ("drops[]", models.Drop),
    ("profiles", thinning.Profiles),
    ("profiles.NAME", thinning.Profile),
    ("profiles.NAME.experiments.ID", thinning.Thinning),
)


def reference() -> str:
    """The text of ``docs/manifest.md``."""
    parts = [_INTRODUCTION, _units()]
    parts += ["\n".join([*_keys(title, model), *_example(title)]) for title, model in _SECTIONS]
    return "\n".join([*parts, _catalogue(), _stacks()])


def _units() -> str:
    kinds: tuple[type[Quantity], ...] = (Duration, Size, Rate, Ratio)
    lines = [
        f"| {kind.dimension} | {', '.join(f'`{unit}`' for unit in kind.units)} | `{kind.example}` |" for kind in kinds
    ]
    return "\n".join(["## Units", "", "| dimension | units | example |", "|---|---|---|", *lines, ""])


def _keys(title: str, model: type[BaseModel]) -> Iterator[str]:
    yield from (f"## `{title}`", "", "| key | required | meaning |", "|---|---|---|")
    last = impairments.Impaired.model_fields
    for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] in last):
        required = "yes" if field.is_required() else ""
        yield f"| `{field.alias or name}` | {required} | {field.description}{_allowed(field)} |"
    yield ""


def _allowed(field: FieldInfo) -> str:
    """The values of a key with a closed set of them, where its description does not name them all."""
    words = list(dict.fromkeys(map(str, _choices(field.annotation))))
    known = re.findall(r"[\w-]+", field.description or "")
    return f"; allowed: {', '.join(f'`{word}`' for word in words)}" if len(words) > 1 and {*words} - {*known} else ""


def _choices(annotation: Any) -> Iterator[Any]:
    """The values of all ``Literal`` in a type; not those of models inside it."""
    for inner in get_args(annotation):
        if get_origin(annotation) is Literal:
            yield inner
        elif get_origin(annotation) is not dict:
            yield from _choices(inner)


def _example(title: str) -> Iterator[str]:
    """What the table describes, as it is written."""
    if lines := example(title):
        yield from ("```yaml", *lines, "```", "")


def _catalogue() -> str:
    lines = ["## Congestion controls", "", "| `cca` | source |", "|---|---|"]
    lines += [f"| `{cca.name}` | {cca.source} |" for cca in CCAS.values()]
    lines += ["", _PARAMETERS, "", "| `cca` | parameter | allowed | default | meaning |", "|---|---|---|---|---|"]
    lines += [
        f"| `{cca.name}` | `{name}` | {parameter.range_text} | {parameter.default_text} | {parameter.meaning} |"
        for cca in CCAS.values()
        for name, parameter in cca.parameters.items()
    ]
    lines += [
        f"| any | `{name}` | {parameter.range_text} | as the host's settings | {parameter.meaning} |"
        for name, parameter in STACK_PARAMETERS.items()
    ]
    lines += ["", "## Web models", ""]
    lines += [f"- `{model.name}`: {model.summary}" for model in WEB_MODELS.values()]
    lines += ["", "## Queue kinds and offloads", ""]
    lines += [f"- `{name}`: {meaning}" for name, meaning in [*QDISCS.items(), *OFFLOADS.items()]]
    return "\n".join([*lines, ""])


def _stacks() -> str:
    lines = ["## Stacks", ""]
    for stack in STACKS.values():
        initial = stack.initial_cwnd_segments
        window = f" Initial window: {initial} segments." if initial else ""
        lines += [f"`{stack.name}`: {stack.summary}.{window}", *_settings(stack.settings), ""]
    lines += ["Every sender, under every stack:", *_settings(SENDER_SETTINGS), ""]
    return "\n".join([*lines, "Every receiver, under every stack:", *_settings(RECEIVER_SETTINGS), ""])


def _settings(settings: tuple[Setting, ...]) -> list[str]:
    return [f"- `{setting.sysctl}={setting.value}`: {setting.reason}" for setting in settings]


if __name__ == "__main__":
    sys.stdout.write(reference())
