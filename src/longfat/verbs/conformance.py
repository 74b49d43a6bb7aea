# SPDX-License-Identifier: Apache-2.0
"""The verb ``conformance``: runs every law's scenarios, prints the verdicts and writes the report."""

from __future__ import annotations

from rich.console import Console

from longfat.backends.registry import open_backend
from longfat.conformance.laws import LAWS
from longfat.conformance.report import write_report
from longfat.conformance.runs import Runs
from longfat.verbs.study import repository_root


def conformance(console: Console, *, reference: bool) -> bool:
    """Whether the kernel follows every law. The report goes to results/, as the reference to kernels/."""
    backend = open_backend("virtual", {}, say=console.print)
    findings = []
    with Runs(backend) as runs:
        runs.begin(LAWS)
        for law in LAWS:
            finding = runs.finding(law)
            findings.append(finding)
            verdict = "; ".join(finding.problems) or ("met" if law.deviation is None else "deviates as its source says")
            console.print(f"{law.name}: {verdict}", soft_wrap=True, markup=False, highlight=False)
    folder = repository_root() / ("kernels" if reference else "results") / "conformance"
    write_report(findings, f"the kernel {backend.pins()['kernel'][:12]}", folder)
    console.print(f"report: {folder / 'README.md'}", soft_wrap=True, markup=False, highlight=False)
    return not any(finding.problems for finding in findings)
