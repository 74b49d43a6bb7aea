# SPDX-License-Identifier: Apache-2.0
"""The reference of the metrics as Markdown, made from their registrations: ``python -m longfat.metrics.reference``."""

from __future__ import annotations

import sys

from longfat.metrics import METRICS, Metric
from longfat.metrics.statistics import UNBOUNDED

_HEAD = """\
# Metrics

<!-- Generated: python -m longfat.metrics.reference > docs/metrics.md -->

What a relation ([relations.md](relations.md)) or a figure may ask of a run. Each metric is one function of
`longfat.metrics`; [extending.md](extending.md) says how to add one. A parameter in brackets may be left out. `flow`
names one flow; without it a metric is of all flows of a run, or of the only one.

`bounds` are the smallest and the largest value that a metric can have: no interval leaves them, and a run with another
value is invalid. Runs of a metric marked
`median` fall into two modes; alone it is judged by its median ([statistics.md](statistics.md)).
"""


def reference() -> str:
    """The whole page."""
    rows = [_row(metric) for _, metric in sorted(METRICS.items()) if metric.shipped]
    table = ["| metric | unit | parameters | bounds | what it is |", "|---|---|---|---|---|", *rows]
    return _HEAD + "\n" + "\n".join(table) + "\n"


def _row(metric: Metric) -> str:
    parameters = [f"`{name}`" if parameter.required else f"[`{name}`]" for name, parameter in metric.parameters.items()]
    if metric.flow:
        parameters.append("`flow`" if metric.must_name_flow else "[`flow`]")
    text = " ".join(metric.definition.replace("``", "`").split())
    text += f" Source: {metric.source}." if metric.source else ""
    bounds = [] if metric.bounds == UNBOUNDED else ["{:g} to {:g}".format(*metric.bounds)]
    bounds += ["median"] if metric.judged_by == "median" else []
    return f"| `{metric.name}` | {metric.unit or '1'} | {', '.join(parameters)} | {', '.join(bounds)} | {text} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
