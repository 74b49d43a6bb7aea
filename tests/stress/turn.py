# SPDX-License-Identifier: Apache-2.0
"""Turns rows of evidence, or criteria of claims, towards a wanted verdict: each attempt is seen.

A round changes a copy of a repository whose evidence has a parent commit. Bad is an attempt after which `verdicts` and
`again` print nothing about it, or after which a report says that its criteria are older than its runs.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from evidenced import committed, with_evidence

from longfat.evidence.criteria import YOUNGER
from stress.commands import call
from stress.damage import reproduced

ROWS = ("value", "measured", "drop", "double", "rename", "record")
CRITERIA = {"relation": (" = 0.5", " = 5"), "statement": ("halves", "doubles"), "paper": ("value: 0.5", "value: 5")}
DOORS = ("first claims and lock", "copied records", "first claims")


def prepare(work: Path, patch: pytest.MonkeyPatch) -> Callable[[random.Random], str]:
    """Make results and evidence of a small study, committed twice; return the round."""
    whole, copy = work / "whole", work / "copy"
    with_evidence(whole, patch)
    patch.setenv("LONGFAT_ROOT", str(copy))
    committed(whole)

    def play(chance: random.Random) -> str:
        shutil.copytree(whole, copy, symlinks=True)
        study, kind = copy / "experiments/small", chance.choice([*ROWS, *CRITERIA, *DOORS])
        try:
            if kind in ROWS:
                _turn_rows(kind, study, chance)
                verdicts, again = call("verdicts", "small"), call("again", "small", "--sample", "99")
                assert verdicts.refused or again.status != 0, f"{kind}: {verdicts.output}{again.output}"
            else:
                name = kind if kind in CRITERIA else chance.choice(list(CRITERIA))
                claims = study / "claims.yaml"
                text = claims.read_text(encoding="utf-8")
                assert CRITERIA[name][0] in text
                claims.write_text(text.replace(*CRITERIA[name]), encoding="utf-8")
                assert YOUNGER in call("verdicts", "small").output, kind
                if kind in DOORS:
                    _judge_again(kind, copy)
            return kind
        finally:
            shutil.rmtree(copy)

    return play


def _turn_rows(kind: str, study: Path, chance: random.Random) -> None:
    """Forge, drop, double or rename a row, or drop the record of a criterion."""
    files = sorted(study.glob("evidence/*/*/*/*.jsonl"))
    path = study / "criteria.jsonl" if kind == "record" else chance.choice(files)
    lines = path.read_text(encoding="ascii").splitlines()
    at = chance.randrange(kind != "record", len(lines))
    row = json.loads(lines[at])
    if kind in ("value", "double"):
        key = chance.choice(sorted(row["values"]))
        row["values"][key] = 1.25 * row["values"][key] if isinstance(row["values"][key], float) else 1.25
    elif kind == "measured":
        row["measured"] = f"{chance.getrandbits(256):064x}"
    elif kind == "rename":
        row["repetition"] += 1
    turned = [] if kind in ("drop", "record") else [json.dumps(row)]
    kept = [lines[at]] if kind == "double" else []
    path.write_text("\n".join([*lines[:at], *kept, *turned, *lines[at + 1 :], ""]), encoding="ascii")


def _judge_again(kind: str, copy: Path) -> None:
    """Judge old runs by new criteria in a results folder that does not show the old ones."""
    results = copy / "results/small"
    if kind == "copied records":
        shutil.copytree(results / "raw", copy / "results/new/raw")
        results = copy / "results/new"
    else:
        (results / "claims-first.json").unlink(missing_ok=True)
        if kind == "first claims and lock":
            (results / "lock.json").unlink()
            shutil.rmtree(results / "checksums")
    answer = reproduced(results)
    page = (results / "report.html").read_text(encoding="utf-8")
    said = re.search(r"recorded when they were first judged, after the runs|have changed since", page)
    assert said, f"{kind}: {answer.output}"
