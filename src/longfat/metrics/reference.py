# SPDX-License-Identifier: Apache-2.0
"""The reference of the metrics as Markdown, from their registrations: ``python -m longfat.metrics.reference``."""

from __future__ import annotations

import sys

from longfat.metrics import METRICS, Metric
from longfat.metrics.statistics import UNBOUNDED

_HEAD = """\
# Metrics

<!-- Generated: python -m longfat.metrics.reference > docs/metrics.md -->

Relations ([relations.md](relations.md)) and figures use these metrics of a run. Each is one function of
`longfat.metrics`; [extending.md](extending.md) shows how to add one. A parameter in brackets is optional. `flow` names
one flow; without it a metric covers all flows of a run, or the only one.

`bounds` are the smallest and the largest possible value: no interval leaves them, and a run with another value is
invalid. Runs of a metric marked `median` fall into two modes; alone it is judged by its median
([statistics.md](statistics.md)).
"""


def reference() -> str:
    """Return the page."""
    rows = [_row(metric) for _, metric in sorted(METRICS.items()) if metric.shipped]
    table = ["| metric | unit | parameters | bounds | definition |", "|---|---|---|---|---|", *rows]
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
