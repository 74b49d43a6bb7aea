# SPDX-License-Identifier: Apache-2.0
"""Changes files of studies at random: the answer is a plan, a verdict, or an error that names a file.

A round changes one file of a copy of a study and has it checked; an accepted file is planned, or judged and drawn from
fabricated results. An answer that takes a minute of CPU is bad.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fabricated_results import make_results, write_study

from stress.commands import Answer, call

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
FILES = ("study.yaml", "claims.yaml", "figures.yaml", "headlines.yaml")
LONG_S = 60.0
WORDS = (
    *("", "null", "{}", "[]", "{a: 1}", "[1, x]", ".nan", ".inf", "true", "'", '"', "!!x", "&a", "*a", "[" * 60, ": "),
    *("\n", "\t", "é", "\x00", "- ", "? ", "|", "%", "@", "${x}", "${algorithm}", "1 s", "999 Tbit/s", "100 %", "0x10"),
    *("goodput", "goodput[delay]", "alike(goodput)", "1 / 0", "a < b < c", "for x", "in x", "=", "<=", "(", ")", "]"),
)
NUMBERS = ("0", "-1", "1", "3.5", "1e9", "1e-9", "1e400", "9" * 20, "007", "60", "1/3")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def prepare(work: Path, patch: pytest.MonkeyPatch) -> Callable[[random.Random], str]:
    """Read the shipped studies and fabricate the results of a small one; return the round."""
    small = write_study(work / "small")
    results = work / "small/results"
    make_results(small, results)
    studies = sorted(path.parent for path in EXPERIMENTS.glob("*/study.yaml"))
    places = (study / name for study in [*studies, small] for name in FILES)
    texts = {path: path.read_text(encoding="utf-8") for path in places if path.exists()}
    lines = {
        name: [line for path, text in texts.items() if path.name == name for line in text.splitlines()]
        for name in FILES
    }

    def play(chance: random.Random) -> str:
        study = small if chance.random() < 0.4 else chance.choice(studies)
        path = chance.choice([path for path in texts if path.parent == study])
        copy = work / "copy" / study.name
        shutil.copytree(study, copy, ignore=shutil.ignore_patterns("evidence", "reference"))
        text = mutated(texts[path], lines[path.name], chance)
        (copy / path.name).write_text(text, encoding="utf-8", errors="surrogatepass")
        began = time.process_time()
        try:
            outcome = _answered(copy, path.name, results if study == small else None)
            assert time.process_time() - began < LONG_S
            return f"{path.name} {outcome}"
        except AssertionError as error:
            raise AssertionError(f"{error}\n{path.name}:\n{text}") from error
        finally:
            shutil.rmtree(copy)

    return play


def _answered(study: Path, name: str, results: Path | None) -> str:
    if refused(call("check", study, "--trust")):
        return "refused"
    if name == "study.yaml":
        call("plan", study)
        return "planned"
    if results is None:
        return "accepted"
    return "refused" if refused(call("report", study, "--results", results)) else "judged"


def refused(answer: Answer) -> bool:
    """Return whether a study was refused. Raises AssertionError if the error names none of its files."""
    assert not answer.refused or any(name in answer.output for name in FILES), answer.output
    assert answer.status in (0, 2, 3), answer.output
    return answer.refused


def mutated(text: str, others: list[str], chance: random.Random) -> str:
    """Change one to three things in the text of a YAML file; ``others`` are lines of such files."""
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        lines = text.splitlines() or [""]
        at = chance.randrange(len(lines))
        key, _, value = lines[at].partition(": ")
        kind = chance.choice(["number", "number", "twin", "twin", "value", "word", "out", "in", "indented", "cut"])
        if kind == "number" and (found := list(NUMBER.finditer(lines[at]))):
            one = chance.choice(found)
            lines[at] = lines[at][: one.start()] + chance.choice(NUMBERS) + lines[at][one.end() :]
        elif kind == "twin" and (twins := [line for line in others if line.partition(":")[0] == key.rstrip(":")]):
            lines[at] = chance.choice(twins)
        elif kind == "value" and value:
            lines[at] = f"{key}: {chance.choice([*WORDS, chance.choice(others).partition(': ')[2]])}"
        elif kind == "out":
            del lines[at]
        elif kind == "in":
            lines.insert(at, chance.choice(others))
        elif kind == "indented":
            lines[at] = lines[at][2:] if chance.random() < 0.5 else f"  {lines[at]}"
        elif kind == "cut":
            del lines[at:]
        else:
            place = chance.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + chance.choice(WORDS) + lines[at][place + chance.randrange(8) :]
        text = "\n".join(lines) + "\n"
    return text
