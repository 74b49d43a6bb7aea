# SPDX-License-Identifier: Apache-2.0
"""The manifest reference, ``docs/manifest.md``, generated from the models so that it cannot lag behind them.

Run as a module to print it. It must not state anything that the models and the catalogue do not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pydantic import BaseModel

from longfat.catalog.ccas import CCAS
from longfat.catalog.offloads import OFFLOADS
from longfat.catalog.qdiscs import QDISCS
from longfat.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, STACKS, Setting
from longfat.catalog.web import WEB_MODELS
from longfat.manifest import models, thinning
from longfat.units import Duration, Quantity, Rate, Ratio, Size

_INTRODUCTION = """\
# The study manifest

<!-- Generated: python -m longfat.manifest.reference > docs/manifest.md -->

A study is one `study.yaml`. Every key stands below; any other is an error. All errors of a file are
reported at once, each with line, key, what was given and what is allowed. YAML is used without aliases,
tags and merge keys.

A value with a dimension is a text with its unit; a bare number is refused, and so is a value that would
have to be rounded. `${factor}` stands for one whole value in `topology`, `hosts`, `flows`, `web`, `udp`, `probes` or
`drops` of an experiment; each factor of a sweep must be used. Factor values that are quantities become
plain numbers in base units in the lock.

Node names follow from the topology: senders are `client1`, `client2`, ...; a single receiver is `server`,
several are `server1`, `server2`, ... A profile only thins: it never adds a repetition or lengthens a flow.
`paper` is the manifest as written.
"""

_PARAMETERS = """\
A parameter stands beside `cca`; one left out has its default. It is set on the host that sends: all flows of
one algorithm from one host share its parameters, and flows from different hosts may differ in them.

```yaml
algorithms:
  gentle: {cca: scalable, a: 0.01}
  eager: {cca: scalable, a: 0.05}
experiments:
  - id: two-to-one
    artifacts: [fig-1]
    topology: {kind: dumbbell, rate: 1 Gbit/s, rtt: 30 ms, senders: 2}
    flows:
      - {name: f1, from: client1, to: server, algorithm: gentle, duration: 60 s}
      - {name: f2, from: client2, to: server, algorithm: eager, duration: 60 s}
```"""

_SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("study.yaml", models.Document),
    ("paper", models.Paper),
    ("algorithms.NAME", models.Algorithm),
    ("hosts", models.Hosts),
    ("experiments[]", models.Experiment),
    ("topology: direct", models.Direct),
    ("topology: delay", models.Delay),
    ("topology: dumbbell", models.Dumbbell),
    ("topology.bottleneck_queue: pfifo", models.Pfifo),
    ("topology.bottleneck_queue: red", models.Red),
    ("flows[]", models.Flow),
    ("web[]", models.Web),
    ("udp[]", models.Udp),
    ("sweep", models.Sweep),
    ("sweep.exclude[]", models.Exclusion),
    ("probes", models.Probes),
    ("drops[]", models.Drop),
    ("profiles", thinning.Profiles),
    ("profiles.NAME", thinning.Profile),
    ("profiles.NAME.experiments.ID", thinning.Thinning),
)


def reference() -> str:
    """The text of ``docs/manifest.md``."""
    parts = [_INTRODUCTION, _units()]
    parts += ["\n".join(_keys(title, model)) for title, model in _SECTIONS]
    return "\n".join([*parts, _catalogue(), _stacks()])


def _units() -> str:
    kinds: tuple[type[Quantity], ...] = (Duration, Size, Rate, Ratio)
    lines = [
        f"| {kind.dimension} | {', '.join(f'`{unit}`' for unit in kind.units)} | `{kind.example}` |" for kind in kinds
    ]
    return "\n".join(["## Units", "", "| dimension | units | example |", "|---|---|---|", *lines, ""])


def _keys(title: str, model: type[BaseModel]) -> Iterator[str]:
    yield from (f"## `{title}`", "", "| key | required | meaning |", "|---|---|---|")
    for name, field in model.model_fields.items():
        required = "yes" if field.is_required() else ""
        yield f"| `{field.alias or name}` | {required} | {field.description} |"
    yield ""


def _catalogue() -> str:
    lines = ["## Congestion controls", "", "| `cca` | source |", "|---|---|"]
    lines += [f"| `{cca.name}` | {cca.source} |" for cca in CCAS.values()]
    lines += ["", _PARAMETERS, "", "| `cca` | parameter | allowed | default | meaning |", "|---|---|---|---|---|"]
    lines += [
        f"| `{cca.name}` | `{name}` | {parameter.range_text} | {parameter.default_text} | {parameter.meaning} |"
        for cca in CCAS.values()
        for name, parameter in cca.parameters.items()
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
