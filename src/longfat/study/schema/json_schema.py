# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of closed models, with defaults as in a YAML file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from longfat.spec.units import Quantity


class JsonSchema(GenerateJsonSchema):
    """pydantic's generator; mappings of free keys keep the schema of their values."""

    def encode_default(self, dft: Any) -> Any:
        """Return a quantity as text, a model as the keys that were set."""
        if isinstance(dft, Quantity):
            return str(dft)
        if isinstance(dft, BaseModel):
            return dft.model_dump(exclude_unset=True)
        return super().encode_default(dft)

    def dict_schema(self, schema: core_schema.DictSchema) -> dict[str, Any]:
        """Return ``additionalProperties`` for the values of free keys, ``propertyNames`` for the keys."""
        keys = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {}
        values = self.generate_inner(schema["values_schema"]) if "values_schema" in schema else {}
        names = {key: keys[key] for key in ("pattern", "enum") if key in keys}
        result: dict[str, Any] = {"type": "object", "additionalProperties": values or True}
        result |= {"propertyNames": names} if names else {}
        return result | ({"minProperties": schema["min_length"]} if schema.get("min_length") else {})
