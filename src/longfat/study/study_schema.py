# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a manifest, for editors, and the tables of all its keys as Markdown.

The schema must not be stricter than the loader, which also checks references to names elsewhere in the file, bounds
and rounding of quantities, and everything that depends on more than one key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import jinja2
from pydantic.fields import FieldInfo

from longfat.spec.units import Duration, Rate, Ratio, Size
from longfat.study import changing, graphs, impairments, kernels, models, sweep, thinning, topologies, unknowns
from longfat.study.catalog.ccas import CCAS, STACK_PARAMETERS, Cca, Parameter
from longfat.study.catalog.offloads import OFFLOADS
from longfat.study.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, STACKS
from longfat.study.models import Document
from longfat.study.queues import KINDS as QUEUES
from longfat.study.schema.explain import JsonSchema
from longfat.study.schema.fields import Closed
from longfat.study.topologies import TOPOLOGIES
from longfat.study.traffic import SECTIONS
from longfat.study.traffic.algorithm import Algorithm
from longfat.study.traffic.web import WEB_MODELS

_REFERENCE = {
    "type": "string",
    "pattern": r"^\$\{[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*\}$",
    "description": "value of a factor, of a field of the record that a factor names, or of a formula",
}
_TOPOLOGIES = {model.__name__: kind for kind, model in TOPOLOGIES.items()}
_QUEUES = {model.__name__: kind for kind, model in QUEUES.items()}
_KINDS = _TOPOLOGIES | _QUEUES  # the kind that selects each model
_WAITS = {"properties": {"kind": {"pattern": r"^\$\{"}}, "required": ["kind"]}
_SWEPT = (
    *("GraphLink", "Policer", "Pause", "Change", "Bursts"),
    *("Hosts", "OneHost", "ProcessingTime", "Algorithm", "Probes", "Drop"),
    *_KINDS,
    *(section.model.__name__ for section in SECTIONS.values()),
)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of ``study.yaml``; in an experiment each value may also be a reference."""
    schema: dict[str, Any] = Document.model_json_schema(schema_generator=JsonSchema)
    schema["$schema"] = JsonSchema.schema_dialect
    parts = schema["$defs"]
    parts["Algorithm"]["allOf"] = [_parameters(cca) for cca in CCAS.values()]
    parts["Algorithm"]["additionalProperties"] = True
    parts["Algorithm"]["oneOf"] = [{"required": [name]} for name in ("cca", "source")]
    for name in _SWEPT:
        parts[name]["properties"] = {key: _swept(value) for key, value in parts[name].get("properties", {}).items()}
    parts["Reference"] = _REFERENCE
    parts["Overlay"] = _overlay(parts, _TOPOLOGIES)
    parts["QueueOverlay"] = _overlay(parts, _QUEUES)
    queue = parts["Overlay"]["properties"]["bottleneck_queue"]
    parts["Overlay"]["properties"]["bottleneck_queue"] = _whole_or(queue, "QueueOverlay")
    # A flow takes missing keys from `defaults`, an experiment from `defaults` and from another experiment.
    parts["Flow"]["required"] = ["name"]
    _open_experiment(parts["Experiment"])
    parts["Sweep"]["properties"]["product"]["additionalProperties"]["uniqueItems"] = True
    for zipped in [parts["Sweep"]["properties"]["product"], *_mappings(parts["Sweep"]["properties"]["zip"])]:
        zipped["additionalProperties"]["minItems"] = 1
    return conditional(schema)


def conditional(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace alternatives by conditions on ``kind``, type or reference, so that errors are from one alternative."""
    return {key: _conditional(part, schema["$defs"]) for key, part in schema.items()}


def _conditional(node: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_conditional(part, parts) for part in node]
    if not isinstance(node, dict):
        return node
    node = {key: _conditional(part, parts) for key, part in node.items() if key != "discriminator"}
    for word in ("oneOf", "anyOf"):
        options = node.get(word, [])
        names = [option.get("$ref", "").rpartition("/")[2] for option in options]
        types = [_types(option, parts) for option in options]
        if names[1:] == ["Reference"]:
            node |= {"if": _REFERENCE, "else": options[0]}
        elif len(kinds := {_KINDS[name]: name for name in names if name in _KINDS}) > 1:
            node |= _conditions(kinds, waiting="Waiting" in names)
        elif len(options) > 1 and all(types) and len({*chain(*types)}) == len([*chain(*types)]):
            cases = [{"if": {"type": one}, "then": option} for one, option in zip(types, options, strict=True)]
            node |= {"type": [*chain(*types)], "allOf": cases}
        else:
            continue
        del node[word]
    return node


def _types(option: Mapping[str, Any], parts: Mapping[str, Any]) -> list[str]:
    """Return the JSON types of a schema; none if it does not state them."""
    found = parts[option["$ref"].rpartition("/")[2]].get("type") if "$ref" in option else option.get("type")
    return found if isinstance(found, list) else [found] if found else []


def _conditions(kinds: Mapping[str, str], *, waiting: bool) -> dict[str, Any]:
    """Return a condition for each kind; a queue (``waiting``) without ``kind`` is the first one, a FIFO."""
    conditions: list[dict[str, Any]] = [
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": {"$ref": f"#/$defs/{name}"}}
        for kind, name in kinds.items()
    ]
    if waiting:
        del conditions[0]["if"]["required"]
        conditions.append({"if": _WAITS, "then": {"$ref": "#/$defs/Waiting"}})
    kind = {"properties": {"kind": {"enum": [*kinds]}}}
    return {
        "type": "object",
        "required": [] if waiting else ["kind"],
        "allOf": [*conditions, {"if": _WAITS, "else": kind}],
    }


def _whole_or(whole: dict[str, Any], overlay: str) -> dict[str, Any]:
    """Return the schema of a mapping that is whole if it has a ``kind``, else laid over another one."""
    return {"if": {"required": ["kind"]}, "then": whole, "else": {"$ref": f"#/$defs/{overlay}"}}


def _swept(value: dict[str, Any]) -> dict[str, Any]:
    """Allow references in a property and instead of it; description and default stay outermost."""
    value = deepcopy(value)
    outer: dict[str, Any] = {key: value.pop(key) for key in ("description", "default", "title") if key in value}
    for node in [value, *value.get("anyOf", ()), *value.get("oneOf", ())]:
        for inner in ("items", "additionalProperties"):
            if isinstance(node.get(inner), dict):
                node[inner] = {"anyOf": [node[inner], {"$ref": "#/$defs/Reference"}]}
    return {"anyOf": [value, {"$ref": "#/$defs/Reference"}], **outer}


def _overlay(parts: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a schema with the keys of several others except ``kind``, for a mapping laid over one of them."""
    keys: dict[str, list[Any]] = {}
    for name in names:
        for key, value in parts[name]["properties"].items():
            if key != "kind" and value not in keys.setdefault(key, []):
                keys[key].append(value)
    properties = {key: values[0] if len(values) == 1 else {"anyOf": values} for key, values in keys.items()}
    properties.pop("kind", None)
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _open_experiment(experiment: dict[str, Any]) -> None:
    properties = experiment["properties"]
    for name in ("kernel", "path", "drops"):
        properties[name] = _swept(properties[name])
    topology = properties["topology"]
    description = topology.pop("description")
    whole = {"anyOf": topology.pop("oneOf")}
    properties["topology"] = {**_whole_or(whole, "Overlay"), "description": description}
    experiment["required"] = ["id"]


def _parameters(cca: Cca) -> dict[str, Any]:
    """Return the schema of the parameters of one congestion control."""
    properties = {name: _swept(_parameter(parameter)) for name, parameter in cca.allowed.items()}
    allowed = {"properties": {"cca": {}, **properties}, "additionalProperties": False}
    return {"if": {"properties": {"cca": {"const": cca.name}}, "required": ["cca"]}, "then": allowed}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    if parameter.words:
        return {"enum": [*parameter.words]}
    least, most = (float(bound) / parameter.per_unit for bound in (parameter.minimum, parameter.maximum))
    return {"type": "number", "minimum": least, "maximum": most}


def _mappings(node: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the mappings of factors among the alternatives of ``zip``."""
    return [option.get("items", option) for option in [*node.get("anyOf", ()), *node.get("oneOf", ())]]


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
    "topology.pause": topologies.Pause,
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
