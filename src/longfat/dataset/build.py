# SPDX-License-Identifier: Apache-2.0
"""Build of a study's dataset: Parquet tables, their description and ``exclusions.csv`` from lock and raw records.

Equal input gives equal bytes: rows are in lock order, then by time, and contain no wall-clock time. Changes no raw
record and computes no metric.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from longfat.dataset import columns
from longfat.dataset.parse import ParsedRun, join, parse_run
from longfat.execute.record.bundle import SUMS, measured_digest
from longfat.execute.record.verify import Record, find_records
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan, PlannedRun
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Scalar
from longfat.study.traffic import misses
from longfat.system.checksums import checksums_of, verify_checksums, write_checksums
from longfat.system.errors import RecordError, RigError
from longfat.system.events import EventSink, discard
from longfat.system.store import draft

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


DATASET = "dataset"
GROUP_ROWS = 16384  # a reader of one run skips the groups without its rows
EXCLUSION_COLUMNS = ("run_id", "scenario", "repetition", "status", "reason")


@dataclass(frozen=True)
class DatasetSummary:
    """Number of lock entries by status."""

    ok: int
    invalid: int
    failed: int
    missing: int

    @property
    def valid(self) -> bool:
        """Whether every run is valid."""
        return self.invalid == self.failed == self.missing == 0


@dataclass(frozen=True)
class _Outcome:
    """The outcome of one run_id; ``measured`` is the digest of the measurements, if there is a record."""

    status: str
    reason: str | None
    parsed: ParsedRun | None = None
    measured: str | None = None


def build_dataset(
    results: Path, impossible: Mapping[str, str] = MappingProxyType({}), events: EventSink = discard
) -> DatasetSummary:
    """Read ``lock.json`` and ``raw/`` under ``results`` and replace its dataset folder as a whole.

    ``impossible`` lists, by run_id, reasons why runs are invalid although they pass every gate; ``events`` learns of
    damaged records. Raises StudyError or
    RecordError if the lock cannot be read, RigError if nothing can be written.
    """
    plan = read_lock(results / "lock.json")
    if checksums_of(results, "lock").exists():  # early locks have none
        verify_checksums(results, "lock")
    records = find_records(results / "raw", events)
    outcomes: dict[str, _Outcome] = {}
    for run in plan.runs:
        if run.run_id not in outcomes:
            outcomes[run.run_id] = _outcome(run, records.get(run.run_id), impossible.get(run.run_id))
    parsed = [outcome.parsed.tables for outcome in outcomes.values() if outcome.parsed]
    tables = {"runs": _runs_table(plan, outcomes)}
    for name, schema in columns.SCHEMAS.items():
        if name != "runs":
            tables[name] = join(schema, [run[name] for run in parsed if name in run])
    _replace(results / DATASET, plan.study, tables)
    used = [record.folder / SUMS for run_id, record in records.items() if run_id in outcomes]
    write_checksums(results, "dataset", [results / "lock.json", *used, *(results / DATASET).iterdir()])
    statuses = tables["runs"]["status"].to_pylist()
    return DatasetSummary(**{status: statuses.count(status) for status in columns.STATUSES})


def dataset_digests(results: Path) -> dict[str, str]:
    """Return the SHA-256 (hex) of each table's file, by table. Raises RigError if there is no dataset."""
    digests = {}
    for table in columns.TABLES:
        path = results / DATASET / f"{table}.parquet"
        try:
            digests[table] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise RigError(f"no dataset: {error}", hint="build it with `./just report STUDY`") from error
    return digests


def _outcome(run: PlannedRun, record: Record | None, impossible: str | None) -> _Outcome:
    if record is None:
        return _Outcome("missing", "not run yet, or its record was damaged")
    if record.status != "ok":
        return _Outcome("failed", record.reason or "no reason recorded")
    try:
        parsed = parse_run(record.folder, run.run_id, run.spec)
    except RecordError as error:
        file = Path(error.where or "").name
        return _Outcome("invalid", f"{file}: {error.message}")
    reasons = misses(Evidence(run.spec, parsed.achieved, parsed.reports, parsed.told, parsed.end_us))
    reasons += (impossible,) if impossible else ()
    status = "invalid" if reasons else "ok"
    return _Outcome(status, "; ".join(reasons) or None, parsed, measured_digest(record.folder))


def _runs_table(plan: Plan, outcomes: Mapping[str, _Outcome]) -> pa.Table:
    schema = columns.runs_schema(run.factors for run in plan.runs)
    rows = []
    for run in plan.runs:
        outcome, source = outcomes[run.run_id], plan.source_of(run)
        row: dict[str, Scalar | None] = {
            "run_id": run.run_id,
            "experiment": run.experiment,
            "scenario": run.scenario,
            "repetition": run.repetition,
            "seed": run.spec.seed,
            "stack": plan.stack,
            "status": outcome.status,
            "reason": outcome.reason,
            "end_us": outcome.parsed.end_us if outcome.parsed else None,
            "measured_sha256": outcome.measured,
            "kernel_version": source.version if source else None,
            "kernel_pinned": source.pinned if source else None,
            "kernel_sha256": run.spec.pins.get("kernel") if source else None,
            "kernel_patches": " ".join((*source.patches, *source.own)) if source else None,
        }
        for name, value in run.factors.items():
            column = columns.FACTOR_PREFIX + name
            row[column] = columns.factor_value(value, schema.field(column).type)
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=schema)


def _write(table: pa.Table, path: Path) -> None:
    """Write a table, with times delta-encoded, in a quarter of the space of a dictionary."""
    times = {name: "DELTA_BINARY_PACKED" for name in table.column_names if name == "t_us"}
    others = [name for name in table.column_names if name not in times]
    form = {"compression": "zstd", "version": "2.6", "row_group_size": GROUP_ROWS}
    pq.write_table(table, path.absolute(), use_dictionary=others, column_encoding=times or None, **form)


def _replace(folder: Path, study: str, tables: Mapping[str, pa.Table]) -> None:
    """Write all tables and replace the folder atomically: it never contains a half-written dataset."""
    try:
        with draft(folder) as new:
            new.mkdir()
            for name, table in tables.items():
                _write(table, new / f"{name}.parquet")
            with (new / "exclusions.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, EXCLUSION_COLUMNS, lineterminator="\n")
                writer.writeheader()
                runs = tables["runs"].select(list(EXCLUSION_COLUMNS)).to_pylist()
                writer.writerows(row for row in runs if row["status"] != "ok")
            text = json.dumps(descriptor(study, new, tables), indent=1, ensure_ascii=True)
            (new / DESCRIPTOR).write_text(text + "\n", encoding="ascii")
    except OSError as error:
        hint = "check the free space and the rights on the results folder"
        raise RigError(f"cannot write the dataset: {error}", where=str(folder), hint=hint) from error
