# SPDX-License-Identifier: Apache-2.0
"""``bench``: the speed of runs on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from longfat.cli.benchmark.run import Wanted, run_bench
from longfat.cli.console import Output
from longfat.cli.options import ids


def bench(
    out: Output,
    cases: Annotated[
        str, typer.Option(help="of fixed,1g-9000,1g-1500,100m-1500,2.4g-1500,10g-9000, or none (default: all)")
    ] = "",
    peers: Annotated[str, typer.Option(help="of host,ns2,ns3, or none (default: all)")] = "",
    repeats: Annotated[int, typer.Option(min=1, help="executions of each run; the fastest one counts")] = 3,
) -> None:
    """Measure the speed of runs on this machine, compared with simulators."""
    run_bench(Wanted(ids(cases), ids(peers), repeats), out, as_text=not out.as_json)
