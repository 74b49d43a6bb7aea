# SPDX-License-Identifier: Apache-2.0
"""``plan``: factors, fixed settings, exclusions with their reasons, and cost of a study. Writes nothing."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from longfat.backends.registry import DEFAULT_BACKEND, open_backend, traits_of
from longfat.backends.testbed.folder import lab_folder
from longfat.cli.console import Output, say
from longfat.cli.options import BackendName, Jobs, On, Only, Profile, Seed, Stack, Study
from longfat.cli.outcome import refuse
from longfat.cli.study import chosen, job_count, resolve, whole_instead
from longfat.execute.memory import available_bytes, needed_bytes, runs_that_fit
from longfat.execute.progress import about
from longfat.plan import Plan
from longfat.plan.estimate import estimate
from longfat.plan.settings import Setting, settings
from longfat.plan.settings import expanded as expand
from longfat.spec.runspec import RunSpec
from longfat.study.profiles import thinned
from longfat.study.study import Point, SweptExperiment
from longfat.study.study import Study as Manifest
from longfat.study.traffic import SECTIONS
from longfat.system.errors import all_of

WIDTH = 100  # most columns, for legibility


def plan(
    out: Output,
    study: Study,
    only: Only = "",
    profile: Profile = "quick",
    stack: Stack = None,
    seed: Seed = None,
    backend: BackendName = DEFAULT_BACKEND,
    jobs: Jobs = None,
    on: On = None,
    expanded: Annotated[
        bool, typer.Option("--expanded", help="print every experiment at every point in full, as YAML")
    ] = False,
) -> None:
    """Print a study's factors, fixed settings, exclusions and cost; write nothing, and need no kernel or image."""
    (folder, choices), *_ = all_of(
        lambda: chosen(study, profile, only, stack, seed),
        lambda: refuse({"--on": None if traits_of(backend).lab else on}, f"backend {backend} needs no lab"),
        lambda: refuse({"--jobs": jobs if expanded else None}, "--expanded prints no cost"),
    )
    made = resolve(folder, choices, {"backend": backend})
    planned = _planned(folder.study, made)
    if expanded:
        out.result(points=[one for swept, points in planned for one in _print_points(swept, points, folder.study, out)])
        return
    count = job_count(jobs)
    kernel = f", kernel {folder.header.kernel}" if folder.header.kernel else ""
    out.print(f"{folder.name}, profile {made.profile}, stack {made.stack}{kernel}, seed {made.seed}")
    if remark := whole_instead(folder, profile):
        say(out, remark)
    tables = [_varied(made, planned), *_fixed(folder.study, planned)]
    tables += [_excluded(made)] if made.excluded else []
    if traits_of(backend).lab:
        tables += list(lab_tables(made, on))
    for table in [_totals(made, backend, count), *tables]:
        out.print(table, width=min(WIDTH, out.width))
    out.result(**_data(made, count))


def _planned(study: Manifest, plan: Plan) -> list[tuple[SweptExperiment, list[Point]]]:
    """Return the experiments of a plan with their points, in the manifest's order."""
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


def _data(plan: Plan, jobs: int) -> dict[str, Any]:
    """Return the plan as plain data: totals, experiments with their runs and cost on one core, exclusions."""
    rows = []
    for name in dict.fromkeys(run.experiment for run in plan.runs):
        runs = [run for run in plan.runs if run.experiment == name]
        one = estimate(plan, 1, runs)
        cost = {"runs": len(runs), "seconds": round(one.wall_seconds, 1), "bytes": one.disk_bytes}
        rows.append({"experiment": name, **cost, "scenarios": {run.scenario: run.factors for run in runs}})
    whole = estimate(plan, jobs)
    return {
        **{name: getattr(plan, name) for name in ("study", "profile", "stack", "seed")},
        "runs": whole.runs,
        "distinct_runs": whole.distinct_runs,
        "jobs": jobs,
        "seconds": round(whole.whole_seconds, 1),
        "bytes": whole.disk_bytes,
        "experiments": rows,
        "excluded": [dataclasses.asdict(one) for one in plan.excluded],
    }


def _varied(plan: Plan, planned: list[tuple[SweptExperiment, list[Point]]]) -> Table:
    """Return the table of experiments with their factors, values, and cost on one core."""
    table = _table("factors, and cost on one core", "experiment", "factors", "points", "runs", "min", "MB")
    for swept, points in planned:
        values = {name: dict.fromkeys(point.labels[name] for point in points) for name in swept.factors}
        lines = [f"{name}: {', '.join(labels)}" for name, labels in values.items()]
        lines += [f"{name} = {formula}" for name, formula in swept.derived.items()]
        cost = estimate(plan, 1, (run for run in plan.runs if run.experiment == swept.id))
        minutes = f"{cost.wall_seconds / 60:.1f}" if cost.wall_seconds >= 3 else "<0.1"
        figures = (str(len(points)), str(cost.runs), minutes, f"{cost.disk_bytes / 1e6:.1f}")
        table.add_row(swept.id, escape("\n".join(lines)), *figures)
    return table


def _fixed(study: Manifest, planned: list[tuple[SweptExperiment, list[Point]]]) -> list[Table]:
    """Return the tables of fixed settings: of all experiments, and of each."""
    constant = {
        swept.id: _constant([settings(point.experiment, study) for point in points]) for swept, points in planned
    }
    everywhere = _constant(list(constant.values()))
    tables = [_table("fixed in all experiments", "key", "value")]
    for key, setting in everywhere.items():
        tables[0].add_row(escape(key), escape(str(setting)))
    if len(constant) > 1:
        tables.append(_table("fixed in one experiment", "experiment", "settings"))
        for name, own in constant.items():
            rest = {key: setting for key, setting in own.items() if everywhere.get(key) != setting}
            tables[1].add_row(name, escape("\n".join(_grouped(rest))))
    return tables


def _grouped(own: Mapping[str, Setting]) -> Iterator[str]:
    """Yield a line for each flow and each other part of an experiment, with its settings."""
    groups: dict[str, list[str]] = {}
    for key, setting in own.items():
        parts = key.split(".")
        size = 2 if parts[0] in (*SECTIONS, "drops") else 1
        groups.setdefault(".".join(parts[:size]), []).append(f"{'.'.join(parts[size:])} {setting}".lstrip())
    for group, lines in groups.items():
        yield f"{group}: {', '.join(lines)}"


def _constant(all_settings: list[dict[str, Setting]]) -> dict[str, Setting]:
    """Return the settings with the same value at all points."""
    first = all_settings[0] if all_settings else {}
    return {key: setting for key, setting in first.items() if all(one.get(key) == setting for one in all_settings)}


def _excluded(plan: Plan) -> Table:
    """Return the table of exclusions by experiment and reason, with the common factors of their points."""
    groups: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for excluded in plan.excluded:
        groups.setdefault((excluded.experiment, excluded.reason), []).append(excluded.factors)
    table = _table("excluded", "experiment", "points", "where", "why")
    for (experiment, reason), points in groups.items():
        shared = {key: value for key, value in points[0].items() if all(point.get(key) == value for point in points)}
        where = ", ".join(f"{key}={value}" for key, value in shared.items())
        table.add_row(experiment, str(len(points)), escape(where), escape(reason))
    return table


def _totals(plan: Plan, backend: str, jobs: int) -> Table:
    """Return the table of runs, time, disk and memory."""
    fitting = ""
    if traits_of(backend).guests:
        specs = list({run.run_id: run.spec for run in plan.runs}.values())
        memory = available_bytes()
        at_once = runs_that_fit(specs, memory)
        jobs = min(jobs, max(at_once, 1))
        largest = max(map(needed_bytes, specs), default=0)
        fitting = f"{at_once}, of up to {largest / 1e9:.1f} GB each ({memory / 1e9:.1f} GB available)"
    cost = estimate(plan, jobs)
    table = _table("cost", "what", "value")
    for what, value in (
        (f"time with {jobs} jobs, and report", about(cost.whole_seconds)),
        ("runs", str(cost.runs)),
        ("distinct runs", str(cost.distinct_runs)),
        ("scenarios excluded", str(len(plan.excluded))),
        (
            "disk",
            f"{cost.disk_bytes / 1e9:.1f} GB" if cost.disk_bytes >= 1e9 else f"{cost.disk_bytes / 1e6:.1f} MB",
        ),
        ("runs that fit into memory at once", fitting),
    ):
        if value:
            table.add_row(what, value)
    return table


def _print_points(swept: SweptExperiment, points: list[Point], study: Manifest, console: Console) -> list[Any]:
    """Print the experiment at each of its points, and return them as plain data."""
    found = []
    for number, point in enumerate(points, 1):
        place = ", ".join(f"{name} {label}" for name, label in point.labels.items())
        lines = [f"# {swept.id}, point {number} of {len(points)}{f': {place}' if place else ''}"]
        whole = {**expand(point.experiment, study), "repetitions": swept.repetitions}
        lines += ["---", yaml.safe_dump(whole, sort_keys=False, width=WIDTH)]
        say(console, "\n".join(lines))
        found.append({"factors": dict(point.labels), **whole})
    return found


def needs(plan: Plan) -> tuple[Counter[str], Counter[str]]:
    """Return the needed number of hosts by role, and of cables by the roles of their ends.

    All routers of a run share one host, and a link within a host needs no cable.
    """
    hosts: Counter[str] = Counter()
    cables: Counter[str] = Counter()
    for spec in {run.run_id: run.spec for run in plan.runs}.values():
        hosts |= Counter(_place(spec, node.name)[0] for node in spec.nodes if node.role != "router")
        hosts |= Counter({"router": int(any(node.role == "router" for node in spec.nodes))})
        cables |= Counter(_ends(spec))
    return +hosts, cables


def lab_tables(plan: Plan, lab: str | None) -> Iterator[Table]:
    """Yield the table of needs and, given a lab, of runs that it refuses. Raises RigError if a host is lost."""
    hosts, cables = needs(plan)
    table = Table(title="needed of a lab", title_justify="left", expand=True)
    table.add_column("what")
    table.add_column("number", justify="right")
    for role, count in sorted(hosts.items()):
        table.add_row(f"host, {role}", str(count))
    for ends, count in sorted(cables.items()):
        table.add_row(f"cable, {ends}", str(count))
    yield table
    if lab is None:
        return
    backend = open_backend("hosts", {"lab": lab_folder(lab)})
    refused: Counter[tuple[str, str]] = Counter()
    for run in plan.runs:
        refused.update((run.experiment, reason) for reason in dict.fromkeys(backend.refuses(run.spec)))
    table = Table(title=f"refused by the lab {lab}", title_justify="left", expand=True)
    for column in ("experiment", "runs", "why"):
        table.add_column(column)
    for (experiment, reason), count in sorted(refused.items()):
        table.add_row(experiment, str(count), escape(reason))
    for reason in backend.capabilities().reasons:
        table.add_row("all", str(len(plan.runs)), escape(reason))
    if table.row_count:
        yield table


def _place(spec: RunSpec, name: str) -> tuple[str, int]:
    """Return the role of a node, and its number among the nodes of the role from 1; routers are on one host."""
    role = next(node.role for node in spec.nodes if node.name == name)
    same = [node.name for node in spec.nodes if node.role == role]
    return role, 1 if role == "router" else same.index(name) + 1


def _ends(spec: RunSpec) -> Iterator[str]:
    for link in spec.links:
        ends = sorted({_place(spec, link.a.node), _place(spec, link.b.node)})
        if len(ends) == 2:
            yield " to ".join(role if role == "router" else f"{role} {number}" for role, number in ends)
