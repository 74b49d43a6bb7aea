# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas of a study's files, for editors. None may be stricter than the loader of its file."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from longfat.manifest.schema import json_schema
from longfat.schema.json_schema import JsonSchema

FORMAT = 2  # of the files
StudyFile = Literal["study", "claims", "figures"]


def schema_of(file: StudyFile) -> dict[str, Any]:
    """JSON Schema (2020-12) of study.yaml, claims.yaml or figures.yaml.

    What a relation says is text to it: only the loader knows the study's names.
    """
    schema = json_schema() if file == "study" else _of_relations(file)
    return schema | {"$id": f"urn:longfat:schema:{file}:{FORMAT}", "title": f"{file}.yaml of a Longfat study"}


def _of_relations(file: StudyFile) -> dict[str, Any]:
    # They need numpy, which the schema of a manifest does not.
    from longfat.figures import KINDS
    from longfat.figures.document import FiguresDocument
    from longfat.relations.claims import ClaimsDocument

    document: type[BaseModel] = ClaimsDocument if file == "claims" else FiguresDocument
    schema = document.model_json_schema(schema_generator=JsonSchema)
    schema["$schema"] = JsonSchema.schema_dialect
    for name, kind in KINDS.items() if file == "figures" else ():
        figure = schema["$defs"][kind.__name__]
        _let_it_be_like_another(figure, name)
        for key in ("paper", "hypothesis"):
            figure["properties"][key]["anyOf"].append({"type": "string"})
    return schema


def _let_it_be_like_another(figure: dict[str, Any], kind: str) -> None:
    """A figure that is ``like`` an earlier one may leave out whatever that one has."""
    own = [kind, "title"]
    further = [key for key in figure["required"] if key not in own]
    figure["required"] = own
    if further:
        figure["anyOf"] = [{"required": ["like"]}, {"required": further}]
