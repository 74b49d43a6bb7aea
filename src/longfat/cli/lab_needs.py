# SPDX-License-Identifier: Apache-2.0
"""Tables of ``plan`` about a lab: the hosts and cables that a study needs, and the runs that a lab refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from longfat.backends.registry import open_backend
from longfat.backends.testbed.folder import lab_folder
from longfat.plan import Plan
from longfat.spec.runspec import RunSpec


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
