# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a manifest, for editors. It must not be stricter than the loader."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from longfat.manifest.models import Document
from longfat.units import Quantity

_REFERENCE = {"type": "string", "pattern": r"^\$\{[a-z][a-z0-9_]*\}$", "description": "value of a factor"}
_SWEPT = ("Direct", "Delay", "Dumbbell", "Pfifo", "Red", "Hosts", "Flow", "Web", "Algorithm", "Probes", "Drop")


class ManifestSchema(GenerateJsonSchema):
    """pydantic's generator, with defaults worded as in a manifest."""

    def encode_default(self, dft: Any) -> Any:
        """Quantities as text, models by the keys that were set."""
        if isinstance(dft, Quantity):
            return str(dft)
        if isinstance(dft, BaseModel):
            return dft.model_dump(exclude_unset=True)
        return super().encode_default(dft)


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of ``study.yaml``; in an experiment each value may also be ``${factor}``."""
    schema: dict[str, Any] = Document.model_json_schema(schema_generator=ManifestSchema)
    schema["$schema"] = ManifestSchema.schema_dialect
    schema["$defs"]["Reference"] = _REFERENCE
    for name in _SWEPT:
        properties = schema["$defs"][name].get("properties", {})
        for key, value in properties.items():
            properties[key] = _or_reference(value)
        if isinstance(schema["$defs"][name].get("additionalProperties"), dict):
            extra = schema["$defs"][name]["additionalProperties"]
            schema["$defs"][name]["additionalProperties"] = _or_reference(extra)
    return schema


def _or_reference(value: dict[str, Any]) -> dict[str, Any]:
    """The same property, or a reference to a factor; description and default stay outermost."""
    outer: dict[str, Any] = {key: value.pop(key) for key in ("description", "default", "title") if key in value}
    return {"anyOf": [value, {"$ref": "#/$defs/Reference"}], **outer}
