# SPDX-License-Identifier: Apache-2.0
"""The reference of the metrics as Markdown, made from their registrations: ``python -m longfat.metrics.reference``."""

from __future__ import annotations

import sys

from longfat.metrics import METRICS, Metric

_HEAD = """\
# Metrics

<!-- Generated: python -m longfat.metrics.reference > docs/metrics.md -->

What a relation ([relations.md](relations.md)) or a figure may ask of a run. Each metric is one function of
`longfat.metrics`; [extending.md](extending.md) says how to add one. A parameter in brackets may be left out. `flow`
names one flow; without it a metric is of all flows of a run, or of the only one.

`n` is the least number of repetitions that the metric may rest on. Throughput varies from run to run, so it needs two
to have an interval; the papers' time plots are single runs, so a reading of one may rest on one.
"""


def reference() -> str:
    """The whole page."""
    rows = [_row(metric) for _, metric in sorted(METRICS.items()) if metric.shipped]
    table = ["| metric | unit | parameters | n | what it is |", "|---|---|---|---|---|", *rows]
    return _HEAD + "\n" + "\n".join(table) + "\n"


def _row(metric: Metric) -> str:
    parameters = [f"`{name}`" if parameter.required else f"[`{name}`]" for name, parameter in metric.parameters.items()]
    if metric.flow:
        parameters.append("`flow`" if metric.must_name_flow else "[`flow`]")
    text = " ".join(metric.definition.replace("``", "`").split())
    text += f" Source: {metric.source}." if metric.source else ""
    return f"| `{metric.name}` | {metric.unit or '1'} | {', '.join(parameters)} | {metric.least} | {text} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
