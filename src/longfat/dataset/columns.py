# SPDX-License-Identifier: Apache-2.0
"""The closed schema of the dataset, from ``columns.toml``: tables, and the names, types and meanings of their columns.

A unit is the last part of a column's name. Reads and writes no dataset.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from longfat.spec.runspec import Scalar
from longfat.study.traffic import TABLES as OF_TRAFFIC
from longfat.study.traffic.kind import Table

FACTOR_PREFIX = "factor_"
STATUSES = ("ok", "invalid", "failed", "missing")

_FILE: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_COLUMNS: Mapping[str, Mapping[str, Any]] = _FILE["columns"]
_TABLES: Mapping[str, Mapping[str, Any]] = _FILE["tables"]
_TYPES = {"text": pa.string(), "whole": pa.int64(), "real": pa.float64(), "truth": pa.bool_()}
_UNITS = {
    "us": "microseconds",
    "ns": "nanoseconds",
    "bytes": "bytes",
    "bps": "bit/s",
    "segments": "segments",
    "packets": "packets",
    "per_s": "bytes/s",
    "bits": "bits",
}


def _column(table: str, name: str) -> Mapping[str, Any]:
    """Return the keys of a column, overridden by the table's own; empty for a column that only a study defines."""
    return {**_COLUMNS.get(name, {}), **_TABLES.get(table, {}).get("own", {}).get(name, {})}


def schema_of(table: Table) -> pa.Schema:
    """Return the columns of a traffic kind's own table."""
    return pa.schema(
        (("run_id", pa.string()), *((name, _TYPES[column.type]) for name, column in table.columns.items()))
    )


WHAT: Mapping[str, str] = {
    **{table: keys["what"] for table, keys in _TABLES.items()},
    **{table.name: table.what for table in OF_TRAFFIC},
}
"""The rows of each table in words."""

SCHEMAS: Mapping[str, pa.Schema] = {  # of `runs` without the study's factors: `runs_schema`
    **{
        table: pa.schema([(name, _TYPES[_column(table, name)["type"]]) for name in keys["columns"]])
        for table, keys in _TABLES.items()
    },
    **{table.name: schema_of(table) for table in OF_TRAFFIC},
}
TABLES = tuple(SCHEMAS)

OF_KERNELS = tuple(SCHEMAS["sockets"].names[SCHEMAS["sockets"].get_field_index("pacing_bps") :])
"""Columns of ``sockets`` that simulators lack; the last one is derived from others."""

SENTINELS: Mapping[str, int] = {name: keys["none"] for name, keys in _COLUMNS.items() if "none" in keys}
"""The number that the kernel reports for a missing value, by column: null in a frame."""

STATES: Mapping[str, Mapping[str, str]] = _FILE["names"]
"""Names of the kernel's numbers, by column."""

_OF_TRAFFIC = {(table.name, name): one.meaning for table in OF_TRAFFIC for name, one in table.columns.items()}


def meaning(table: str, column: str) -> str:
    """Return the meaning of a column."""
    if column.startswith(FACTOR_PREFIX):
        return f"factor `{column.removeprefix(FACTOR_PREFIX)}` of the study; null where the experiment does not have it"
    found: str = _OF_TRAFFIC.get((table, column)) or _column(table, column).get("meaning", column)
    return found


def unit(column: str) -> str:
    """Return the unit of a column; "" if it has none, and for factors, whose units only the study knows."""
    if column.startswith(FACTOR_PREFIX):
        return ""
    by_name = next((name for end, name in _UNITS.items() if column.endswith(f"_{end}")), "")
    return str(_COLUMNS.get(column, {}).get("unit", by_name))


def type_name(kind: pa.DataType) -> str:
    """Return the name of a type in Frictionless Table Schema."""
    return {pa.string(): "string", pa.int64(): "integer", pa.float64(): "number", pa.bool_(): "boolean"}[kind]


def runs_schema(factors: Iterable[Mapping[str, Scalar]]) -> pa.Schema:
    """Return the schema of ``runs``: the fixed columns, then ``factor_<name>`` by name, with a type for all values.

    A text column with values that are no text has them in its metadata.
    """
    values: dict[str, list[Scalar]] = {}
    for row in factors:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    extra = [_factor_field(FACTOR_PREFIX + name, values[name]) for name in sorted(values)]
    return pa.schema([*SCHEMAS["runs"], *extra])


def factor_value(value: Scalar | None, kind: pa.DataType) -> Scalar | None:
    """Return the value as its column stores it; a text column stores the text of every value."""
    return str(value) if value is not None and kind == pa.string() else value


def factors_of(row: Mapping[str, Scalar | None], schema: pa.Schema) -> dict[str, Scalar]:
    """Return the factors of a row of ``runs`` by name, with the values that they have in the study."""
    found = {}
    for column in schema:
        value = row[column.name]
        if column.name.startswith(FACTOR_PREFIX) and value is not None:
            other = json.loads((column.metadata or {}).get(_NOT_TEXT, "{}"))
            found[column.name.removeprefix(FACTOR_PREFIX)] = other.get(value, value)
    return found


_NOT_TEXT = b"values that are no text, by their text"


def _factor_field(name: str, values: list[Scalar]) -> pa.Field:
    kind = _type_of(values)
    other = {str(value): value for value in values if kind == pa.string() and not isinstance(value, str)}
    return pa.field(name, kind, metadata={_NOT_TEXT: json.dumps(other)} if other else None)


def _type_of(values: list[Scalar]) -> pa.DataType:
    if all(isinstance(value, bool) for value in values):
        return pa.bool_()
    if any(isinstance(value, str | bool) for value in values):
        return pa.string()
    return pa.int64() if all(isinstance(value, int) for value in values) else pa.float64()
