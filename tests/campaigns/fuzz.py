# SPDX-License-Identifier: Apache-2.0
"""Changes the files of the shipped studies at random: whatever they say, the answer is a plan or an error of ours.

A round changes one file of a copy of a study and has it checked; what is accepted is planned, or judged and drawn
from fabricated results. A traceback is bad, an error without a file's name too, and an answer that takes a minute of
CPU.
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from fabricated_results import write_results, write_study

from campaigns.commands import Answer, call
from campaigns.mutations import another_text
from campaigns.rounds import Campaign, Failed, Round
from longfat.dataset.build import build_dataset

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
FILES = ("study.yaml", "claims.yaml", "figures.yaml")
LONG_S = 60.0


class Nonsense(Campaign):
    """The campaign in the folder ``work``: the shipped studies, and one with results of the fake backend."""

    def __init__(self, work: Path) -> None:
        super().__init__(work)
        self.studies = sorted(path.parent for path in EXPERIMENTS.glob("*/study.yaml"))
        self.small = write_study(work / "small")
        self.results = work / "small/results"
        write_results(self.small, self.results)
        build_dataset(self.results)
        self.texts = {
            path: path.read_text(encoding="utf-8")
            for study in [*self.studies, self.small]
            for path in (study / name for name in FILES)
            if path.exists()
        }
        self.lines = {
            name: [line for path, text in self.texts.items() if path.name == name for line in text.splitlines()]
            for name in FILES
        }

    def play(self, chance: random.Random) -> Round:
        """One round."""
        fabricated = chance.random() < 0.4  # results to judge and draw by it are there
        study = self.small if fabricated else chance.choice(self.studies)
        path = chance.choice([path for path in self.texts if path.parent == study])
        copy = self.work / "copy" / study.name
        shutil.copytree(study, copy, ignore=shutil.ignore_patterns("evidence", "reference"))
        text = another_text(self.texts[path], self.lines[path.name], chance)
        (copy / path.name).write_text(text, encoding="utf-8", errors="surrogatepass")
        struck = f"{path.name} of {'a study with results' if fabricated else 'a shipped study'}"
        began = time.process_time()
        try:
            outcome = self._answered(copy, path.name, fabricated)
            if (seconds := time.process_time() - began) > LONG_S:
                raise Failed("wrong", f"the answer takes {seconds:.0f} s of CPU")
            return Round(struck, outcome)
        except Failed as error:
            return Round(struck, error.outcome, f"{error}\nthe file:\n{text}" if len(text) < 4000 else str(error))
        finally:
            shutil.rmtree(copy)

    def _answered(self, study: Path, name: str, fabricated: bool) -> str:
        """What comes of it, in a word. Raises Failed."""
        if refused(call("check", study), study):
            return "refused by check"
        if name == "study.yaml":
            call("plan", study)
            return "planned"
        if not fabricated:
            return "accepted"
        return "refused later" if refused(call("analyse", study, "--results", self.results), study) else "judged"


def refused(answer: Answer, study: Path) -> bool:
    """Whether the study was refused. Raises Failed where that does not name one of its files."""
    if answer.refused and not any(name in answer.output for name in FILES):
        raise Failed("wrong", f"an error that names no file of {study.name}: {answer.output[:500]}")
    if answer.status not in (0, 2, 3):
        raise Failed("wrong", f"exit status {answer.status}: {answer.output[:500]}")
    return answer.refused
