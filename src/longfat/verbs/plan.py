# SPDX-License-Identifier: Apache-2.0
"""``plan``: what of a study varies, what is fixed, what is left out and why, and what it all costs. Writes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from longfat.backends.registry import require_backend, traits_of
from longfat.execute.memory import available_bytes, needed_bytes, runs_that_fit
from longfat.manifest.profiles import thinned
from longfat.manifest.study import Point, Study, SweptExperiment
from longfat.plan import Plan, PlannedRun
from longfat.plan.settings import Setting, expanded, settings
from longfat.studies import StudyFolder
from longfat.traffic import SECTIONS
from longfat.verbs.pace import Pace, pace_here
from longfat.verbs.run import Machine, results_path
from longfat.verbs.say import print_json, say
from longfat.verbs.study import Choices, find_study, job_count, resolve

FORMAT = 1
WIDTH = 100  # columns of a terminal; a table that is wider is harder to read, not easier


def show_plan(
    name: str | StudyFolder,
    choices: Choices,
    machine: Machine,
    console: Console,
    *,
    spelt_out: bool = False,
    as_json: bool = False,
) -> bool:
    """Print the plan; no kernel or image is needed for it.

    ``spelt_out`` prints every point in full instead.
    """
    backend = machine.backend
    require_backend(backend)
    folder = find_study(name)
    plan = resolve(folder, choices, {"backend": backend})
    study = folder.study
    planned = _planned(study, plan)
    if spelt_out:
        for swept, points in planned:
            _print_points(swept, points, study, console)
        return True
    pace = pace_here(plan, results_path(folder, machine.results, backend))
    if as_json:
        print_json(_data(plan, pace, job_count(machine.jobs)))
        return True
    kernel = f", kernel {study.header.kernel}" if study.header.kernel else ""
    console.print(f"{folder.name}, profile {plan.profile}, stack {plan.stack}{kernel}, seed {plan.seed}")
    tables = [_varied(plan, planned, pace), *_fixed(study, planned), *([_excluded(plan)] if plan.excluded else [])]
    tables.append(_totals(plan, backend, job_count(machine.jobs), pace))
    for table in tables:
        console.print(table, width=min(WIDTH, console.width))
    return True


def _planned(study: Study, plan: Plan) -> list[tuple[SweptExperiment, list[Point]]]:
    """The experiments of a plan with their points, in the manifest's order."""
    factors: dict[str, list[Mapping[str, object]]] = {}
    for run in plan.runs:
        if run.repetition == 1:
            factors.setdefault(run.experiment, []).append(run.factors)
    rule = None if plan.profile == "paper" else getattr(study.header.profiles, plan.profile)
    chosen = [thinned(swept, rule) for swept in study.experiments if swept.id in factors]
    return [(swept, [point for point in swept.points if point.factors in factors[swept.id]]) for swept in chosen]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", expand=True)
    for column in columns:
        table.add_column(column, justify="right" if column in ("points", "runs", "min", "MB") else "left")
    return table


def _data(plan: Plan, pace: Pace, jobs: int) -> dict[str, Any]:
    """The plan as plain data: its experiments with their runs and cost on one core, what is excluded, and the whole."""
    experiments: dict[str, list[PlannedRun]] = {}
    for run in plan.runs:
        experiments.setdefault(run.experiment, []).append(run)
    rows = []
    for name, runs in experiments.items():
        seconds, disk = pace.cost(plan, runs, 1)
        scenarios = {run.scenario: run.factors for run in runs}
        cost = {"runs": len(runs), "seconds": round(seconds, 1), "bytes": round(disk)}
        rows.append({"experiment": name, **cost, "scenarios": scenarios})
    seconds, disk = pace.cost(plan, plan.runs, jobs)
    distinct = len({run.run_id for run in plan.runs})
    whole = {"runs": len(plan.runs), "distinct_runs": distinct, "jobs": jobs}
    names = {"study": plan.study, "profile": plan.profile, "stack": plan.stack, "seed": plan.seed}
    total = {"seconds": round(seconds, 1), "bytes": round(disk), "estimated": pace.words}
    excluded = [dataclasses.asdict(one) for one in plan.excluded]
    return {"format": FORMAT, **names, **whole, **total, "experiments": rows, "excluded": excluded}


def _varied(plan: Plan, planned: list[tuple[SweptExperiment, list[Point]]], pace: Pace) -> Table:
    """Each experiment with its factors and their values, and what it costs on one core."""
    table = _table("what varies, and what it costs on one core", "experiment", "factors", "points", "runs", "min", "MB")
    for swept, points in planned:
        lines = [f"{name}: {', '.join(_values(name, points))}" for name in swept.factors]
        lines += [f"{name} = {formula}" for name, formula in swept.derived.items()]
        runs = tuple(run for run in plan.runs if run.experiment == swept.id)
        seconds, disk = pace.cost(plan, runs, 1)
        figures = (str(len(points)), str(len(runs)), f"{seconds / 60:.1f}", f"{disk / 1e6:.1f}")
        table.add_row(swept.id, escape("\n".join(lines)), *figures)
    return table


def _values(name: str, points: Iterable[Point]) -> list[str]:
    return list(dict.fromkeys(point.labels[name] for point in points))


def _fixed(study: Study, planned: list[tuple[SweptExperiment, list[Point]]]) -> list[Table]:
    """What does not vary: in all experiments, and what each has besides."""
    constant = {
        swept.id: _constant([settings(point.experiment, study) for point in points]) for swept, points in planned
    }
    everywhere = _constant(list(constant.values()))
    tables = [_table("what is fixed in all experiments", "key", "value")]
    for key, setting in everywhere.items():
        tables[0].add_row(escape(key), escape(str(setting)))
    if len(constant) > 1:
        tables.append(_table("what is fixed besides, by experiment", "experiment", "settings"))
        for name, own in constant.items():
            rest = {key: setting for key, setting in own.items() if everywhere.get(key) != setting}
            tables[1].add_row(name, escape("\n".join(_grouped(rest))))
    return tables


def _grouped(own: Mapping[str, Setting]) -> Iterator[str]:
    """A line for each flow and each other part of an experiment, with its settings."""
    groups: dict[str, list[str]] = {}
    for key, setting in own.items():
        section, _, rest = key.partition(".")
        name, _, inner = rest.partition(".")
        group, rest = (f"{section}.{name}", inner) if section in (*SECTIONS, "drops") else (section, rest)
        groups.setdefault(group, []).append(f"{rest} {setting}".lstrip())
    for group, parts in groups.items():
        yield f"{group}: {', '.join(parts)}"


def _constant(all_settings: list[dict[str, Setting]]) -> dict[str, Setting]:
    """The settings that are there, and the same, in all."""
    first = all_settings[0] if all_settings else {}
    return {key: setting for key, setting in first.items() if all(one.get(key) == setting for one in all_settings)}


def _excluded(plan: Plan) -> Table:
    """What is left out, by experiment and reason; the factors are those that all such points share."""
    groups: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for excluded in plan.excluded:
        groups.setdefault((excluded.experiment, excluded.reason), []).append(excluded.factors)
    table = _table("what is excluded", "experiment", "points", "where", "why")
    for (experiment, reason), points in groups.items():
        shared = {key: value for key, value in points[0].items() if all(point.get(key) == value for point in points)}
        where = ", ".join(f"{key}={value}" for key, value in shared.items())
        table.add_row(experiment, str(len(points)), escape(where), escape(reason))
    return table


def _totals(plan: Plan, backend: str, jobs: int, pace: Pace) -> Table:
    fitting = ""
    if traits_of(backend).guests:
        specs = list({run.run_id: run.spec for run in plan.runs}.values())
        memory = available_bytes()
        at_once = runs_that_fit(specs, memory)
        jobs = min(jobs, max(at_once, 1))
        largest = max(map(needed_bytes, specs), default=0)
        fitting = f"{at_once}, of up to {largest / 1e9:.1f} GB each ({memory / 1e9:.1f} GB available)"
    seconds, disk = pace.cost(plan, plan.runs, jobs)
    table = _table("what it takes", "what", "value")
    for what, value in (
        ("runs", str(len(plan.runs))),
        ("distinct runs", str(len({run.run_id for run in plan.runs}))),
        ("scenarios excluded", str(len(plan.excluded))),
        (f"estimated time with {jobs} jobs", f"{seconds / 60:.1f} min"),
        ("estimated disk", f"{disk / 1e6:.1f} MB"),
        ("estimated", pace.words),
        ("runs that fit into memory at once", fitting),
    ):
        if value:
            table.add_row(what, value)
    return table


def _print_points(swept: SweptExperiment, points: list[Point], study: Study, console: Console) -> None:
    for number, point in enumerate(points, 1):
        place = ", ".join(f"{name} {label}" for name, label in point.labels.items())
        lines = [f"# {swept.id}, point {number} of {len(points)}{f': {place}' if place else ''}"]
        lines += ["---", yaml.safe_dump(expanded(point.experiment, study), sort_keys=False, width=WIDTH)]
        say(console, "\n".join(lines))
