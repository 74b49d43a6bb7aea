# SPDX-License-Identifier: Apache-2.0
"""The description of a dataset, ``datapackage.json``: its tables, columns, types, units and digests.

The format is a Frictionless Data Package (https://datapackage.org/standard/data-package/).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from longfat.dataset import columns

DESCRIPTOR = "datapackage.json"
_LICENCE = {
    "name": "Apache-2.0",
    "path": "https://www.apache.org/licenses/LICENSE-2.0",
    "title": "Apache License 2.0",
}
_ENTRY = ["experiment", "scenario", "repetition"]
_RUN = {"fields": ["run_id"], "reference": {"resource": "runs", "fields": ["run_id"]}}


def descriptor(study: str, folder: Path, tables: Mapping[str, pa.Table]) -> dict[str, object]:
    """Return the descriptor of the tables whose Parquet files are in ``folder``. Raises OSError."""
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": study.strip("_").replace("_", "-"),
        "title": f"Longfat: dataset of the study {study}",
        "description": "Measurements of real Linux TCP. Times count from the start of the measurement of each run.",
        "licenses": [_LICENCE],
        "resources": [_resource(name, folder / f"{name}.parquet", table.schema) for name, table in tables.items()],
    }


def _resource(name: str, path: Path, schema: pa.Schema) -> dict[str, object]:
    content = path.read_bytes()
    keys = {"primaryKey": _ENTRY} if name == "runs" else {"foreignKeys": [_RUN]}
    return {
        "name": name,
        "path": path.name,
        "title": columns.WHAT.get(name, name),
        "type": "table",
        "format": "parquet",
        "mediatype": "application/vnd.apache.parquet",
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "schema": {"fields": [_field(name, field) for field in schema], **keys},
    }


def _field(table: str, field: pa.Field) -> dict[str, object]:
    found: dict[str, object] = {
        "name": field.name,
        "type": columns.type_name(field.type),
        "description": columns.meaning(table, field.name),
    }
    if unit := columns.unit(field.name):
        found["unit"] = unit
    if field.name in columns.SENTINELS:
        found["missingValues"] = ["", str(columns.SENTINELS[field.name])]
    if field.name in columns.STATES:
        found["categories"] = [{"value": key, "label": name} for key, name in columns.STATES[field.name].items()]
    return found
