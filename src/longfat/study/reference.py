# SPDX-License-Identifier: Apache-2.0
"""The tables of all keys of a manifest as Markdown, generated from the models and the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import jinja2
from pydantic.fields import FieldInfo

from longfat.spec.units import Duration, Rate, Ratio, Size
from longfat.study import changing, graphs, impairments, kernels, models, sweep, thinning, topologies, unknowns
from longfat.study.catalog.ccas import CCAS, STACK_PARAMETERS
from longfat.study.catalog.offloads import OFFLOADS
from longfat.study.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, STACKS
from longfat.study.queues import KINDS as QUEUES
from longfat.study.schema.closed import Closed
from longfat.study.traffic import SECTIONS
from longfat.study.traffic.algorithm import Algorithm
from longfat.study.traffic.web import WEB_MODELS

_SECTIONS: dict[str, type[Closed]] = {
    "study.yaml": models.Document,
    "paper": models.Paper,
    "kernels.NAME": kernels.Kernel,
    "algorithms.NAME": Algorithm,
    "hosts": models.Hosts,
    "hosts.per_host.NAME": models.OneHost,
    "unknowns.NAME": unknowns.Unknown,
    "defaults": models.Defaults,
    "experiments[]": models.Experiment,
    "topology: direct": topologies.Direct,
    "topology: delay": topologies.Delay,
    "topology: dumbbell": topologies.Dumbbell,
    "topology: parking_lot": graphs.ParkingLot,
    "topology: graph": graphs.Graph,
    "topology.links[]": graphs.GraphLink,
    "topology.policer": graphs.Policer,
    "topology.changes[]": changing.Change,
    "topology.loss: bursts": impairments.Bursts,
    **{f"topology.bottleneck_queue: {name}": kind for name, kind in QUEUES.items()},
    **{f"{name}[]": section.model for name, section in SECTIONS.items()},
    "sweep": sweep.Sweep,
    "sweep.product.FACTOR[]: record": sweep.Record,
    "probes": models.Probes,
    "drops[]": models.Drop,
    "profiles": thinning.Profiles,
    "profiles.NAME": thinning.Profile,
    "profiles.NAME.experiments.ID": thinning.Thinning,
}


def reference() -> str:
    """Return the tables, from ``reference.md.j2``."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"code": _code, "keys": _keys, "allowed": _allowed, "example": _example}
    return environment.get_template("reference.md.j2").render(
        quantities=(Duration, Size, Rate, Ratio),
        sections=_SECTIONS,
        ccas=CCAS.values(),
        stack_parameters=STACK_PARAMETERS,
        web_models=WEB_MODELS.values(),
        offloads=OFFLOADS,
        stacks=STACKS.values(),
        sender_settings=SENDER_SETTINGS,
        receiver_settings=RECEIVER_SETTINGS,
    )


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _keys(model: type[Closed]) -> list[tuple[str, FieldInfo]]:
    """Return the keys of a model; the keys of impairments and changes come last."""
    last = impairments.Impaired.model_fields
    fields = sorted(model.model_fields.items(), key=lambda item: item[0] in last)
    return [(field.alias or name, field) for name, field in fields]


def _allowed(field: FieldInfo) -> str:
    """Return the allowed words of a key, unless its description names them all."""
    words = list(dict.fromkeys(map(str, _choices(field.annotation))))
    known = re.findall(r"[\w-]+", field.description or "")
    return f"; allowed: {_code(words)}" if len(words) > 1 and {*words} - {*known} else ""


def _choices(annotation: Any) -> Iterator[Any]:
    """Yield the values of all ``Literal`` in a type, without models inside it."""
    for inner in get_args(annotation):
        if get_origin(annotation) is Literal:
            yield inner
        elif get_origin(annotation) is not dict:
            yield from _choices(inner)


def _example(model: type[Closed], title: str) -> str:
    """Return the model's examples, below the key in the title."""
    key = title.partition(": ")[0].rpartition(".")[2]
    if key.endswith("[]"):
        return "\n".join([f"{key.removesuffix('[]')}:", *(f"  - {text}" for text in model.examples)])
    return "\n".join(f"{'- ' if key == 'topology' else ''}{key}: {text}" for text in model.examples)
