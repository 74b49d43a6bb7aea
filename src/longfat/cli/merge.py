# SPDX-License-Identifier: Apache-2.0
"""``merge``: records from elsewhere in one results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longfat.cli.console import Output
from longfat.cli.outcome import expect
from longfat.verbs import merge as records


def merge(
    out: Output,
    results: Annotated[Path, typer.Argument(help="results folder to join the records in; made if missing")],
    folders: Annotated[list[str], typer.Argument(help="results folders, or folders of records")],
) -> bool:
    """Join the records of other results folders in one, and check each record."""
    whole = records.merge(results, folders, out, as_json=out.as_json)
    return expect(whole, "some records are damaged and were not joined; their runs count as missing")
