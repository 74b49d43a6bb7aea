# SPDX-License-Identifier: Apache-2.0
"""``evaluate``: an algorithm against RFC 9743, by the study bcp133."""

from __future__ import annotations

from typing import Annotated

import typer

from longfat.cli.console import Output
from longfat.cli.options import Jobs, Profile, Results
from longfat.cli.outcome import expect
from longfat.verbs import evaluate as cards
from longfat.verbs.run import Machine


def evaluate(
    out: Output,
    algorithms: Annotated[
        list[str] | None, typer.Argument(help="names of algorithms, or C files; none: draw the cards that are kept")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="keep the cards with the study, to be committed")] = False,
    profile: Profile = "quick",
    jobs: Jobs = None,
    results: Results = None,
) -> bool:
    """Test an algorithm against RFC 9743 (BCP 133), compared with Reno, CUBIC and BBR, and draw its report card."""
    machine = Machine(jobs=jobs, results=results)
    valid = cards.evaluate(algorithms or (), profile, machine, out, keep=keep, as_json=out.as_json)
    return expect(valid, "some runs failed or are invalid; the card counts them")
