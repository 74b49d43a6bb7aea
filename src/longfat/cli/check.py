# SPDX-License-Identifier: Apache-2.0
"""``check``: name every problem of a study, or print what its files may contain."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer
from pydantic import BaseModel

from longfat.cli.console import WARNING, Output, say
from longfat.cli.options import MaybeStudy
from longfat.cli.outcome import refuse
from longfat.cli.study import find_study, require_effects
from longfat.data.study_folder import StudyFolder
from longfat.figures import KINDS
from longfat.figures.document import FiguresDocument
from longfat.metrics.reference import reference as metric_table
from longfat.plan.build import require_distinct_names
from longfat.relations.claim_lint import without_oracle
from longfat.relations.claims import ClaimsDocument, counted_claims
from longfat.relations.headlines import HeadlinesDocument
from longfat.study.schema.explain import JsonSchema
from longfat.study.study_schema import conditional, json_schema
from longfat.study.study_schema import reference as key_tables
from longfat.system.errors import Problem, StudyError
from longfat.system.trust import agree

FORMAT = 2  # format of the files that the schemas describe
File = Literal["study", "claims", "figures", "headlines"]
DOCUMENTS: Mapping[File, type[BaseModel]] = {
    "claims": ClaimsDocument,
    "figures": FiguresDocument,
    "headlines": HeadlinesDocument,
}


def check(
    out: Output,
    study: MaybeStudy = None,
    schema: Annotated[File | None, typer.Option(help="print the JSON Schema of this file of studies instead")] = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="print tables of all keys of study.yaml and of all metrics instead")
    ] = False,
    trust: Annotated[bool, typer.Option("--trust", help="let the study's programs run with your rights")] = False,
) -> bool | int:
    """Check manifest, claims, headlines and figures of a study, and name every problem."""
    if schema or keys:
        other = {"STUDY": study, "--trust": trust, "--keys": keys and schema, "--json": keys and out.as_json}
        refuse(other, f"{'a schema is' if schema else 'tables are'} printed")
    if schema:
        sys.stdout.write(json.dumps(schema_of(schema), indent=2) + "\n")
        return True
    if keys:
        sys.stdout.write(f"{key_tables()}\n## Metrics\n\n{metric_table()}")
        return True
    if study is None:
        raise StudyError("no study is named", hint="`./just check STUDY`; `./just check` alone runs the linters")
    folder = find_study(study)
    if trust:
        for program in folder.programs:
            agree(program)
    problems = _problems(folder, raised=not out.as_json)
    warnings = () if problems else folder.warnings
    out.result(
        problems=[dataclasses.asdict(one) for one in problems], warnings=[dataclasses.asdict(one) for one in warnings]
    )
    if problems:
        return StudyError.exit_status
    summary = _summary(folder)
    say(out, f"{summary}, no problems" + (f", {_count(len(warnings), 'warning')}" if warnings else ""))
    for warning in warnings:
        say(out, f"warning: {warning}", WARNING)
    return True


def _problems(folder: StudyFolder, raised: bool) -> tuple[Problem, ...]:
    """Return the problems of a study; if ``raised``, raise StudyError with them instead."""
    try:
        folder.check()
        require_distinct_names(folder.study, folder.study.experiments)
        require_effects(folder)
    except StudyError as error:
        if raised:
            raise
        return error.listed
    return ()


def _summary(folder: StudyFolder) -> str:
    study = folder.study
    claims = counted_claims(len(folder.claims), study.header)
    silent = len(without_oracle(folder.claims, study)) if study.header.paper else 0
    claims += f" ({silent} of these without the paper's own numbers)" if silent else ""
    experiments = _count(len(study.experiments), "experiment")
    return f"{folder.name}: {experiments}, {claims}, {_count(len(folder.figures.figures), 'figure')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def schema_of(file: File) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of study.yaml, or of another file of a study.

    It is never stricter than the loader of the file. A relation is plain text in the schema, because only the loader
    has the names of the study.
    """
    schema = json_schema() if file == "study" else _schema_of_relations(file)
    return schema | {"$id": f"urn:longfat:schema:{file}:{FORMAT}", "title": f"{file}.yaml of a Longfat study"}


def _schema_of_relations(file: File) -> dict[str, Any]:
    schema = DOCUMENTS[file].model_json_schema(schema_generator=JsonSchema)
    schema["$schema"] = JsonSchema.schema_dialect
    for name, kind in KINDS.items() if file == "figures" else ():
        figure = schema["$defs"][kind.__name__]
        _allow_like(figure, name)
        for key in ("paper", "hypothesis"):
            figure["properties"][key]["anyOf"].append({"type": "string"})
    if file == "figures":
        schema["properties"]["figures"]["items"] = _by_key(schema["$defs"])
    return conditional(schema)


def _by_key(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a figure: the model of the kind that is among its keys."""
    needed = [{"required": [kind]} for kind in KINDS]
    known: dict[str, Any] = {key: {} for model in KINDS.values() for key in parts[model.__name__]["properties"]}
    models = zip(needed, KINDS.values(), strict=True)
    cases = [{"if": one, "then": {"$ref": f"#/$defs/{model.__name__}"}} for one, model in models]
    return {"oneOf": needed, "allOf": cases, "properties": known, "additionalProperties": False}


def _allow_like(figure: dict[str, Any], kind: str) -> None:
    """Make all keys optional that a figure with ``like`` takes from an earlier figure."""
    own = [kind, "title"]
    further = [key for key in figure["required"] if key not in own]
    figure["required"] = own
    if further:
        figure["anyOf"] = [{"required": ["like"]}, {"required": further}]
