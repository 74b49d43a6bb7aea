# SPDX-License-Identifier: Apache-2.0
"""The tables of ``docs/manifest.md``, generated from the models and the catalogue. Run as a module to write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from longfat.catalog.ccas import CCAS, STACK_PARAMETERS
from longfat.catalog.offloads import OFFLOADS
from longfat.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, STACKS, Setting
from longfat.catalog.web import WEB_MODELS
from longfat.manifest import axes, changing, graphs, impairments, kernels, models, thinning, topologies, unknowns
from longfat.queues import KINDS as QUEUES
from longfat.schema.closed import Closed
from longfat.traffic import SECTIONS
from longfat.traffic.algorithm import Algorithm
from longfat.units import Duration, Quantity, Rate, Ratio, Size

PAGE = Path("docs/manifest.md")
MARK = "<!-- Generated: python -m longfat.manifest.reference -->\n"

_SECTIONS: tuple[tuple[str, type[Closed]], ...] = (
    ("study.yaml", models.Document),
    ("paper", models.Paper),
    ("kernels.NAME", kernels.Kernel),
    ("algorithms.NAME", Algorithm),
    ("hosts", models.Hosts),
    ("hosts.per_host.NAME", models.OneHost),
    ("unknowns.NAME", unknowns.Unknown),
    ("defaults", models.Defaults),
    ("experiments[]", models.Experiment),
    ("topology: direct", topologies.Direct),
    ("topology: delay", topologies.Delay),
    ("topology: dumbbell", topologies.Dumbbell),
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


def with_reference(page: str) -> str:
    """Return the page with its generated part as it is now."""
    return f"{page.split(MARK)[0]}{MARK}\n{reference()}"


def reference() -> str:
    """Return the generated part of the page."""
    parts = [_units()]
    parts += ["\n".join([*_keys(title, model), *_example(title, model)]) for title, model in _SECTIONS]
    return "\n".join([*parts, _catalogue(), _stacks()])


def _units() -> str:
    kinds: tuple[type[Quantity], ...] = (Duration, Size, Rate, Ratio)
    lines = [
        f"| {kind.dimension} | {', '.join(f'`{unit}`' for unit in kind.units)} | `{kind.example}` |" for kind in kinds
    ]
    return "\n".join(["## Units", "", "| dimension | units | example |", "|---|---|---|", *lines, ""])


def _keys(title: str, model: type[Closed]) -> Iterator[str]:
    yield from (f"## `{title}`", "", "| key | required | meaning |", "|---|---|---|")
    last = impairments.Impaired.model_fields
    for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] in last):
        required = "yes" if field.is_required() else ""
        yield f"| `{field.alias or name}` | {required} | {field.description}{_allowed(field)} |"
    yield ""


def _allowed(field: FieldInfo) -> str:
    """Return the allowed words of a key, unless its description names them all."""
    words = list(dict.fromkeys(map(str, _choices(field.annotation))))
    known = re.findall(r"[\w-]+", field.description or "")
    return f"; allowed: {', '.join(f'`{word}`' for word in words)}" if len(words) > 1 and {*words} - {*known} else ""


def _choices(annotation: Any) -> Iterator[Any]:
    """Yield the values of all ``Literal`` in a type, without models inside it."""
    for inner in get_args(annotation):
        if get_origin(annotation) is Literal:
            yield inner
        elif get_origin(annotation) is not dict:
            yield from _choices(inner)


def _example(title: str, model: type[Closed]) -> Iterator[str]:
    """Yield the lines of the model's examples, below the key in the title."""
    key = title.partition(": ")[0].rpartition(".")[2]
    lines = [f"  - {text}" for text in model.examples]
    if key == "topology":
        lines = [f"- topology: {text}" for text in model.examples]
    elif key.endswith("[]"):
        lines.insert(0, f"{key.removesuffix('[]')}:")
    else:
        lines = [f"{key}: {text}" for text in model.examples]
    if model.examples:
        yield from ("```yaml", *lines, "```", "")


def _catalogue() -> str:
    lines = ["## Congestion controls", "", "| `cca` | source |", "|---|---|"]
    lines += [f"| `{cca.name}` | {cca.source} |" for cca in CCAS.values()]
    lines += ["", "| `cca` | parameter | allowed | default | meaning |", "|---|---|---|---|---|"]
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
    lines += ["", "## Offloads", "", *(f"- `{name}`: {meaning}" for name, meaning in OFFLOADS.items())]
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
    PAGE.write_text(with_reference(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
