# SPDX-License-Identifier: Apache-2.0
"""The table of metrics in docs/metrics.md, generated from their registrations.

``python -m longfat.metrics.reference`` writes it into the page.
"""

from __future__ import annotations

from pathlib import Path

from longfat.metrics import METRICS, Metric
from longfat.metrics.statistics import UNBOUNDED

PAGE = Path("docs/metrics.md")
MARK = "<!-- Generated: python -m longfat.metrics.reference -->\n"


def with_reference(page: str) -> str:
    """Return the page with the present table of metrics after the mark."""
    return page.split(MARK)[0] + MARK + "\n" + reference()


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
    text += f" Source: {metric.source}." if metric.source else ""
    bounds = [] if metric.bounds == UNBOUNDED else ["{:g} to {:g}".format(*metric.bounds)]
    bounds += ["median"] if metric.judged_by == "median" else []
    return f"| `{metric.name}` | {metric.unit or '1'} | {', '.join(parameters)} | {', '.join(bounds)} | {text} |"


if __name__ == "__main__":
    PAGE.write_text(with_reference(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
