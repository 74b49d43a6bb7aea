# SPDX-License-Identifier: Apache-2.0
"""Damages one file of results or evidence: the damage is named, mended, or without effect.

A round damages a file of a copy and gives the command that reads it first. The answer must name the file, or have the
undamaged outputs; everything that can be made again must then come out as it was. A changed value of the evidence that
is still a value is found by comparison with runs.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from evidenced import with_evidence

from longfat.cli.sample import compare_results
from longfat.data.study_folder import StudyFolder
from stress.commands import Answer, call
from stress.kill import made

FILES = {  # pattern below the results folder, and the command or page that reads such a file first
    "raw record": ("raw/*/**/*", "report"),
    "lock": ("lock.json", "report"),
    "table": ("dataset/*", "report"),
    "verdicts": ("verdicts.json", "report"),
    "first claims": ("claims-first.json", "report"),
    "figure": ("figures/*", "report"),
    "checksums": ("checksums/*", "report"),
    "report": ("report.html", "front page"),
    "events": ("events.jsonl", "report"),
}
EVIDENCE = "evidence"
REPRODUCED = 0.25  # of the rounds with results go on to `reproduce`, which takes seconds
OUTPUTS = ("dataset/", "figures/", "verdicts.json", "report.html")
# How verdicts name rows and values that they do not rest on.
NOT_COUNTED = ("  left out: ", ": the evidence does not have this value: ")


def prepare(work: Path, patch: pytest.MonkeyPatch) -> Callable[[random.Random], str]:
    """Make results and evidence of a small study; return the round."""
    whole, copy = work / "whole", work / "copy"
    with_evidence(whole, patch)
    patch.setenv("LONGFAT_ROOT", str(copy))
    results, study = copy / "results/small", copy / "experiments/small"
    shutil.copytree(whole, copy, symlinks=True)
    reproduced(results)
    verdicts = call("verdicts", "small").output
    compared, _ = compare_results(results, StudyFolder(study))
    shutil.rmtree(whole)
    copy.rename(whole)
    expected = made_of(whole / "results/small")

    def play(chance: random.Random) -> str:
        shutil.copytree(whole, copy, symlinks=True)
        try:
            struck = chance.choice([*FILES, "raw record", "table", EVIDENCE, EVIDENCE])
            if struck == EVIDENCE:
                return f"{struck} {_evidence(chance, copy, verdicts, compared)}"
            return f"{struck} {_results(chance, results, *FILES[struck], expected)}"
        finally:
            shutil.rmtree(copy)

    return play


def _results(chance: random.Random, results: Path, pattern: str, verb: str, expected: dict[str, bytes]) -> str:
    path = chance.choice(sorted(path for path in results.glob(pattern) if path.is_file()))
    what = f"{path.relative_to(results)}: {damaged(path, chance)}, then {verb}"
    answer = call("report", *([] if verb == "front page" else ["small"]))
    if verb == "front page":
        answer = Answer(answer.status, (results.parent / "index.html").read_text(encoding="utf-8"))
    named = str(path) in answer.output or (not path.exists() and f"{path.parent.name}/{path.name}" not in answer.output)
    assert named or not answer.refused, f"{what}: refused without its name: {answer.output}"
    # A damaged record counts as missing.
    named = named or (answer.status == 4 and any((results / "raw/.damaged").glob("*")))
    assert named or made_of(results) == expected, f"{what}: other outputs without a word: {answer.output}"
    if chance.random() < REPRODUCED:
        answer = reproduced(results)
        if answer.refused:
            there = str(path) in answer.output or str(path.parent) in answer.output
            assert there, f"{what}, then reproduce: refused without its name: {answer.output}"
        else:
            assert answer.status == 0 and made_of(results) == expected, f"{what}, then reproduce: {answer.output}"
    return "named" if named else "harmless"


def _evidence(chance: random.Random, copy: Path, verdicts: str, compared: int) -> str:
    study = copy / "experiments/small"
    path = chance.choice(sorted([*study.glob("evidence/**/*.jsonl"), *(copy / "kernels/epochs").glob("*.jsonl")]))
    what = f"{path.relative_to(copy)}: {damaged(path, chance)}, then verdicts"
    answer = call("verdicts", "small")
    if answer.refused:
        assert path.name in answer.output, f"{what}: refused without its name: {answer.output}"
        return "named"
    if answer.output == verdicts:
        return "harmless"
    found, mismatches = compare_results(copy / "results/small", StudyFolder(study))
    if mismatches:
        return "found by comparison"
    less = found < compared or any(words in answer.output for words in NOT_COUNTED)
    assert less, f"{what}: other verdicts by rows that are all right: {answer.output}"
    return "less evidence"


def reproduced(results: Path) -> Answer:
    """Reproduce the study with the backend of the tests."""
    return call("reproduce", "small", "--backend", "fake", "--profile", "paper", "--results", results)


def made_of(results: Path) -> dict[str, bytes]:
    """Return the content that equal results have equal, nothing if it cannot be read."""
    try:
        return {name: content for name, content in made(results).items() if name.startswith(OUTPUTS)}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def damaged(path: Path, chance: random.Random) -> str:
    """Replace a file by other content, a folder, a link or nothing; return the kind of damage."""
    content = path.read_bytes()
    kinds = ["flip", "cut", "add", "zeros", "delete", "folder", "link"]
    kind = chance.choices(kinds, weights=[8, 4, 2, 2, 1, 1, 1])[0] if content else chance.choice(["add", "delete"])
    at = chance.randrange(max(len(content), 1))
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(chance.choice([path.name, "/nonexistent", "/dev/null", "."]))
    elif kind == "flip":
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :])
    elif kind == "cut":
        path.write_bytes(content[:at])
    elif kind == "add":
        path.write_bytes(content[:at] + bytes(chance.randrange(256) for _ in range(20)) + content[at:])
    elif kind == "zeros":
        path.write_bytes(content[:at] + bytes(100) + content[at:])
    return kind
