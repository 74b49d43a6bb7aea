# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a manifest, for editors. Must not be stricter than the loader.

The loader also checks references to names elsewhere in the file, bounds and rounding of quantities, and everything that
depends on more than one key.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from longfat.study.catalog.ccas import CCAS, Cca, Parameter
from longfat.study.models import Document
from longfat.study.queues import KINDS as QUEUES
from longfat.study.schema.json_schema import JsonSchema
from longfat.study.traffic import SECTIONS

_REFERENCE = {
    "type": "string",
    "pattern": r"^\$\{[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*\}$",
    "description": "value of a factor, of a field of the record that a factor names, or of a formula",
}
_SWEPT = (
    *("Direct", "Delay", "Dumbbell", "ParkingLot", "Graph", "GraphLink", "Policer", "Change", "Bursts"),
    *("Hosts", "OneHost", "ProcessingTime", "Algorithm", "Probes", "Drop"),
    *(kind.__name__ for kind in QUEUES.values()),
    *(section.model.__name__ for section in SECTIONS.values()),
)
_TOPOLOGIES = ("Direct", "Delay", "Dumbbell", "ParkingLot", "Graph")
_QUEUES = tuple(kind.__name__ for kind in QUEUES.values())


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
    parts["Overlay"]["properties"]["bottleneck_queue"] = {"anyOf": [queue, {"$ref": "#/$defs/QueueOverlay"}]}
    # A flow takes missing keys from `defaults`, an experiment from `defaults` and from another experiment.
    parts["Flow"]["required"] = ["name"]
    _open_experiment(parts["Experiment"])
    parts["Sweep"]["properties"]["product"]["additionalProperties"]["uniqueItems"] = True
    for zipped in [parts["Sweep"]["properties"]["product"], *_mappings(parts["Sweep"]["properties"]["zip"])]:
        zipped["additionalProperties"]["minItems"] = 1
    return schema


def _swept(value: dict[str, Any]) -> dict[str, Any]:
    """Allow references in a property and instead of it; description and default stay outermost."""
    value = deepcopy(value)
    outer: dict[str, Any] = {key: value.pop(key) for key in ("description", "default", "title") if key in value}
    for node in [value, *value.get("anyOf", ()), *value.get("oneOf", ())]:
        for inner in ("items", "additionalProperties"):
            if isinstance(node.get(inner), dict):
                node[inner] = {"anyOf": [node[inner], {"$ref": "#/$defs/Reference"}]}
        if "oneOf" in node:  # a reference instead of a `kind` would match several
            node["anyOf"] = [*node.pop("oneOf"), *node.get("anyOf", ())]
            node.pop("discriminator", None)
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
    properties["topology"] = {"anyOf": [whole, {"$ref": "#/$defs/Overlay"}], "description": description}
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
