# SPDX-License-Identifier: Apache-2.0
"""The table of all metrics as Markdown, generated from their registrations."""

from __future__ import annotations

from longfat.metrics import METRICS, Metric
from longfat.metrics.statistics import UNBOUNDED


def reference() -> str:
    """Return the table of all metrics."""
    rows = [_row(metric) for _, metric in sorted(METRICS.items()) if metric.shipped]
    table = ["| metric | unit | parameters | bounds | definition |", "|---|---|---|---|---|", *rows]
    return "\n".join(table) + "\n"


def _row(metric: Metric) -> str:
    parameters = [f"`{name}`" if parameter.required else f"[`{name}`]" for name, parameter in metric.parameters.items()]
    if metric.flow:
        parameters.append("`flow`" if metric.must_name_flow else "[`flow`]")
    text = " ".join(metric.definition.replace("``", "`").split())
    for name, parameter in metric.parameters.items():
        text = text.replace(f"`{parameter.argument}`", f"`{name}`")
    text += f" Source: {metric.source}." if metric.source else ""
    bounds = [] if metric.bounds == UNBOUNDED else ["{:g} to {:g}".format(*metric.bounds)]
    bounds += ["median"] if metric.judged_by == "median" else []
    return f"| `{metric.name}` | {metric.unit or '1'} | {', '.join(parameters)} | {', '.join(bounds)} | {text} |"
