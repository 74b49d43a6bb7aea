# SPDX-License-Identifier: Apache-2.0
"""Damages files of results or evidence: each damage is named, mended, or without effect.

A round damages a copy. Of records one file each: `run` executes these again, and all files come out as they were. Of
the other results one file of each kind: the command that reads it must name it, or the outputs are the undamaged ones.
Of the evidence one file after the other: a changed value that is still a value is found by comparison with runs.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from evidenced import add, repository
from fabricated_results import write_results, write_study

from longfat.cli.sample import compare_results
from longfat.data.study_folder import StudyFolder
from stress.commands import Answer, call
from stress.kill import made

REPETITIONS = 8
OTHERS = (  # patterns below the results folder
    *("lock.json", "dataset/*", "figures/*", "verdicts.json", "report.html", "claims-first.json", "events.jsonl"),
    "checksums/*",
)
FAKE = ("small", "--backend", "fake", "--profile", "paper", "--results")
SHARES = (0.0, 0.5, 1.0, 1.0)  # parts of the kinds and records of which a file is damaged; 0 is a single file
OUTPUTS = ("dataset/", "figures/", "verdicts.json", "report.html")
# How verdicts name rows and values that they do not rest on.
NOT_COUNTED = ("  left out: ", ": the evidence does not have this value: ")


def prepare(
    work: Path, patch: pytest.MonkeyPatch, repetitions: int = REPETITIONS
) -> Callable[[random.Random], Counter[str]]:
    """Make results and evidence of a small study; return the round."""
    whole, copy = work / "whole", work / "copy"
    repository(whole, patch)
    write_results(write_study(whole, repetitions=repetitions), whole / "results/small")
    add(whole / "results/small")
    patch.setenv("LONGFAT_ROOT", str(copy))
    results, study = copy / "results/small", copy / "experiments/small"
    shutil.copytree(whole, copy, symlinks=True)
    reproduced(results)
    verdicts = call("verdicts", "small").output
    compared, _ = compare_results(results, StudyFolder(study))
    shutil.rmtree(whole)
    copy.rename(whole)
    kept = whole / "results/small"
    expected, measured = made_of(kept), measured_in(kept)

    def play(chance: random.Random) -> Counter[str]:
        shutil.copytree(whole, copy, symlinks=True)
        try:
            kind = chance.choices(["records", "results", "evidence"], weights=[8, 1, 1])[0]
            if kind == "records":
                return _records(chance, results, measured)
            if kind == "results":
                return _results(chance, kept, results, expected)
            return _evidence(chance, whole, copy, verdicts, compared)
        finally:
            shutil.rmtree(copy)

    return play


def _records(chance: random.Random, results: Path, measured: dict[str, bytes]) -> Counter[str]:
    folders = sorted((results / "raw").iterdir())
    struck = chance.sample(folders, chance.choice([1, len(folders) // 2, len(folders), len(folders)]))
    kinds = {}
    for folder in struck:
        path = chance.choice(sorted(path for path in folder.glob("**/*") if path.is_file()))
        kinds[str(path.relative_to(results))] = damaged(path, chance)
    answer = call("run", *FAKE, results)
    assert answer.status == 0, f"{kinds}: {answer.output}"
    missed = {path.name for path in struck} - {path.stem for path in (results / "raw/.damaged").iterdir()}
    assert not missed, f"{kinds}: not executed again: {missed}"
    assert measured_in(results) == measured, f"{kinds}: other measurements"
    return Counter({"executed again": len(struck)})


def _results(chance: random.Random, whole: Path, results: Path, expected: dict[str, bytes]) -> Counter[str]:
    places = [*OTHERS, *(f"raw/{path.name}/**/*" for path in (results / "raw").iterdir())]
    share = chance.choice(SHARES)
    places = [place for place in places if chance.random() < share] or [chance.choice(places)]
    files = [sorted(path for path in results.glob(place) if path.is_file()) for place in places]
    struck = {path: damaged(path, chance) for path in map(chance.choice, files)}
    what = ", ".join(f"{path.relative_to(results)}: {kind}" for path, kind in struck.items())
    named, page = set[Path](), results / "report.html"
    if page in struck:
        call("report")
        named |= _named([page], (results.parent / "index.html").read_text(encoding="utf-8"))
    restored = set[Path]()
    while (answer := call("report", "small")).refused:
        found = _named(set(struck) - restored, answer.output)
        assert found, f"{what}: refused without a name: {answer.output}"
        restored |= found
        for path in found:
            _restore(path, whole / path.relative_to(results))
    named |= restored
    records = {path.stem for path in (results / "raw/.damaged").glob("*")}
    assert answer.status == (4 if records else 0), f"{what}: {answer.output}"
    named |= {path for path in struck if records & set(path.parts)}
    if not records:
        assert made_of(results) == expected, f"{what}: other outputs without a word: {answer.output}"
    answer = reproduced(results)
    assert answer.status == 0 and made_of(results) == expected, f"{what}, then reproduce: {answer.output}"
    return Counter({"named": len(named), "harmless": len(struck) - len(named)})


def _named(paths: Iterable[Path], text: str) -> set[Path]:
    return {path for path in paths if str(path) in text or (not path.exists() and str(path.parent) in text)}


def _restore(path: Path, whole: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)
    shutil.copyfile(whole, path)


def _evidence(chance: random.Random, whole: Path, copy: Path, verdicts: str, compared: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for path in sorted([*copy.glob("experiments/small/evidence/**/*.jsonl"), *copy.glob("kernels/epochs/*.jsonl")]):
        found[_of_evidence(chance, path, copy, verdicts, compared)] += 1
        _restore(path, whole / path.relative_to(copy))
    return found


def _of_evidence(chance: random.Random, path: Path, copy: Path, verdicts: str, compared: int) -> str:
    what = f"{path.relative_to(copy)}: {damaged(path, chance)}, then verdicts"
    answer = call("verdicts", "small")
    if answer.refused:
        assert path.name in answer.output, f"{what}: refused without its name: {answer.output}"
        return "named"
    if answer.output == verdicts:
        return "harmless"
    found, mismatches = compare_results(copy / "results/small", StudyFolder(copy / "experiments/small"))
    if mismatches:
        return "found by comparison"
    less = found < compared or any(words in answer.output for words in NOT_COUNTED)
    assert less, f"{what}: other verdicts by rows that are all right: {answer.output}"
    return "less evidence"


def reproduced(results: Path) -> Answer:
    """Reproduce the study with the backend of the tests."""
    return call("reproduce", *FAKE, results)


def measured_in(results: Path) -> dict[str, bytes]:
    """Return the content of the records, without the times of their execution and their checksums."""
    files = (path for path in results.glob("raw/[!.]*/**/*") if path.name not in ("run.json", "SHA256SUMS"))
    return {str(path.relative_to(results)): path.read_bytes() for path in files if path.is_file()}


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
