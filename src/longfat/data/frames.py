# SPDX-License-Identifier: Apache-2.0
"""Tables of the dataset as tidy polars frames: with factors, names of states, and null for missing values.

Owns the form of the frames; ``longfat.dataset.columns`` has the meaning of columns.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from longfat.dataset.columns import FACTOR_PREFIX, SENTINELS, STATES, TABLES, meaning, runs_schema, unit
from longfat.dataset.load import no_dataset
from longfat.relations.judge import Verdict
from longfat.spec.units import Duration, Quantity, Rate, Ratio, Size, read_quantity
from longfat.study.schema.names import require
from longfat.study.study import Study, SweptExperiment
from longfat.system.errors import RigError

# Importing polars makes system calls restart after SIGINT, so that Ctrl-C would wait for their end.
signal.siginterrupt(signal.SIGINT, True)

VERDICTS = "verdicts"
FRAMES = (*TABLES, VERDICTS)
JOINED = ("experiment", "scenario", "repetition")
_BASE: Mapping[type[Quantity], str] = {Duration: "microseconds", Size: "bytes", Rate: "bit/s", Ratio: "ppm"}

_VERDICTS: Mapping[str, tuple[type[pl.DataType], str, str]] = {
    "claim": (pl.String, "", "id of the claim in claims.yaml"),
    "artifact": (pl.String, "", "figure or table of the paper"),
    "kind": (pl.String, "", "measured, calibrated, law, construction, arithmetic or inconsistent"),
    "verdict": (pl.String, "", "verdict on the claim, such as `reproduced`"),
    "statement": (pl.String, "", "statement of the claim"),
    "paper": (pl.String, "", "value that the paper states"),
    "where": (pl.String, "", "place of the statement in the paper"),
    "comparison": (pl.Int64, "", "number of the comparison in the claim, from 1; null without a comparison"),
    "what": (pl.String, "", "compared quantity"),
    "measured": (
        pl.Float64,
        "of the column `unit`",
        "mean of the measured values, or their median",
    ),
    "sd": (pl.Float64, "of the column `unit`", "standard deviation of the measured values"),
    "low": (pl.Float64, "of the column `unit`", "lower end of the interval"),
    "high": (pl.Float64, "of the column `unit`", "upper end of the interval"),
    "n": (pl.Int64, "", "number of independent runs"),
    "allowed": (pl.String, "", "the limit that decides"),
    "unit": (pl.String, "", "unit of the measured value"),
    "outcome": (pl.String, "", "outcome of the comparison"),
    "why": (pl.String, "", "the reason behind the outcome"),
    "confidence": (pl.Float64, "", "confidence of the interval, which is the one that decides"),
    "reason": (pl.String, "", "reason of the verdict"),
}


def frame(folder: Path, table: str, experiment: SweptExperiment | None = None) -> pl.DataFrame:
    """Read a table of the dataset in ``folder`` with the factors of its runs, for one experiment or for all.

    A run of several experiments has its rows in each of them. An experiment without runs has no rows.
    Raises StudyError for an unknown table, RigError if a table cannot be read.
    """
    runs = scan(folder, "runs").collect()
    factors = [name for name in runs.columns if name.startswith(FACTOR_PREFIX)]
    if experiment is not None:
        own = [FACTOR_PREFIX + name for name in experiment.factors]
        missing = [pl.lit(None, kind).alias(name) for name, kind in _types(experiment).items() if name not in factors]
        runs = runs.filter(pl.col("experiment") == experiment.id).drop(name for name in factors if name not in own)
        factors, runs = own, runs.with_columns(missing)
    if table == "runs":
        return runs
    require("table", table, TABLES)
    kept = runs.select("run_id", *JOINED, *factors)
    rows = scan(folder, table).filter(pl.col("run_id").is_in(kept["run_id"].implode()))
    found = rows.with_columns(_clean(rows.collect_schema().names())).collect()
    return kept.join(found, on="run_id", how="inner", maintain_order="left_right")


def verdict_frame(verdicts: Sequence[Verdict]) -> pl.DataFrame:
    """Return a row for each comparison of each claim; a claim without comparisons has one row."""
    rows = [row for verdict in verdicts for row in _rows(verdict)]
    return pl.DataFrame(rows, schema={name: kind for name, (kind, _, _) in _VERDICTS.items()}, orient="row")


def columns(of: pl.DataFrame, table: str, study: Study) -> pl.DataFrame:
    """Describe the columns of a frame: name, type, unit and meaning."""
    described = [_described(name, table, study) for name in of.columns]
    data = {"column": of.columns, "type": [str(kind) for kind in of.dtypes]}
    return pl.DataFrame({**data, "unit": [unit for unit, _ in described], "meaning": [text for _, text in described]})


def factor_unit(study: Study, factor: str) -> str:
    """Return the unit of the values of a factor in the dataset; "" for names and plain numbers."""
    for experiment in study.experiments:
        for point in experiment.points:
            if isinstance(label := point.labels.get(factor), str) and (quantity := read_quantity(label)):
                return _BASE[type(quantity)]
    return ""


def _described(name: str, table: str, study: Study) -> tuple[str, str]:
    if table == VERDICTS:
        return _VERDICTS[name][1:]
    if name.startswith(FACTOR_PREFIX):
        return factor_unit(study, name.removeprefix(FACTOR_PREFIX)), meaning(table, name)
    return unit(name), meaning(table, name)


def scan(folder: Path, table: str) -> pl.LazyFrame:
    """Open a table of the dataset in ``folder``. Raises RigError if it cannot be read."""
    path = folder / f"{table}.parquet"
    if not path.exists():
        raise no_dataset(folder)
    try:
        found = pl.scan_parquet(path, glob=False)
        found.collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:
        hint = "build it again with `./just report STUDY`"
        raise RigError(f"the dataset cannot be read: {error}", where=str(path), hint=hint) from error
    return found


def _types(experiment: SweptExperiment) -> Mapping[str, pl.DataType]:
    """Return the factor columns of an experiment, with their types in the dataset."""
    values = [{name: value} for name, values in experiment.factors.items() for value in values]
    schema = runs_schema(values)
    empty = pl.DataFrame(schema.empty_table())
    return {name: kind for name, kind in empty.schema.items() if name.startswith(FACTOR_PREFIX)}


def _clean(names: Sequence[str]) -> list[pl.Expr]:
    """Return expressions that replace the kernel's missing-value numbers by null, and numbers of states by names."""
    nulls = [
        pl.when(pl.col(name) != none).then(pl.col(name)).alias(name)
        for name, none in SENTINELS.items()
        if name in names
    ]
    named = [
        pl.col(name).replace_strict(states, default=pl.col(name)).cast(pl.Categorical)
        for name, states in STATES.items()
        if name in names
    ]
    return nulls + named


def _rows(verdict: Verdict) -> list[tuple[object, ...]]:
    head = (
        *(verdict.claim, verdict.artifact, verdict.category, verdict.verdict),
        *(verdict.statement, verdict.paper, verdict.where),
    )
    if not verdict.evidence:
        return [(*head, *(None,) * 12, verdict.reason)]
    return [
        (
            *(*head, number, one.what, one.mean, one.sd, one.low, one.high, one.n),
            *(one.limit, one.unit, one.outcome, one.why, one.confidence, one.reason or verdict.reason),
        )
        for number, one in enumerate(verdict.evidence, start=1)
    ]
