# SPDX-License-Identifier: Apache-2.0
"""Damages files of every kind: each damage is refused by name, mended, or without any effect.

A round damages one file of a copy of results, evidence or a cache folder and gives the command that reads it first. An
answer that names the file is `found`; one with the undamaged outputs is `harmless`. Everything that can be made anew
must then come out as it was. Of evidence, a value that was changed and can be one is found by the comparison with runs
that `reproduce` and `evidence verify` make.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from evidenced import with_evidence
from tiny_images import empty_cache
from tiny_kernels import tiny_kernels

from campaigns.commands import Answer, call
from campaigns.kill import made
from campaigns.mutations import damaged
from campaigns.rounds import Campaign, Failed, Round
from longfat.builds.image import ImageBuild, build_image
from longfat.builds.kernel import build_kernel
from longfat.builds.roots import open_root, remove_damaged_roots
from longfat.errors import LongfatError
from longfat.studies import StudyFolder
from longfat.verbs.verify import compare_results

FILES = {  # pattern below the results folder, and the verb that reads such a file first
    "raw record": ("raw/*/**/*", "dataset"),
    "lock": ("lock.json", "dataset"),
    "table": ("dataset/*", "analyse"),
    "verdicts": ("verdicts.json", "report"),
    "first claims": ("claims-first.json", "report"),
    "figure": ("figures/*", "report"),
    "seal": ("seals/*", "report"),
    "report": ("report.html", "reports"),
    "events": ("events.jsonl", "report"),
    "who holds it": (".in-use", "report"),
}
HEALED = 0.25  # of the rounds with results go on to `reproduce`, which takes seconds
OUTPUTS = ("dataset/", "figures/", "verdicts.json", "report.html")
# How verdicts say that they do not rest on some rows or values.
NOT_COUNTED = ("  left out: ", ": the evidence does not have this value: ")
CODE = "c" * 64


class Damages(Campaign):
    """The campaign in the folder ``work``."""

    def __init__(self, work: Path) -> None:
        super().__init__(work)
        self.home = work / "whole"
        with_evidence(self.home, self.patch)
        self.patch.setenv("LONGFAT_ROOT", str(work / "copy"))
        results = self._copy()
        self._reproduced(results)
        self.verdicts = call("verdicts", "small").output
        self.compared = compare_results(results, StudyFolder(self.study)).compared
        shutil.rmtree(self.home)
        (work / "copy").rename(self.home)
        self.made = made_of(self.home / "results/small")
        self.cache, self.kernels = self._tiny_cache()

    @property
    def study(self) -> Path:
        """The study's folder in the copy."""
        return self.work / "copy/experiments/small"

    def play(self, chance: random.Random) -> Round:
        """One round."""
        kinds: dict[str, Callable[[random.Random, str], str]] = dict.fromkeys(FILES, self._results)
        kinds |= {"evidence": self._evidence, "cache: image and code": self._image, "cache: kernel": self._kernel}
        struck = chance.choice([*kinds, "raw record", "table", "evidence", "cache: image and code"])
        try:
            return Round(struck, kinds[struck](chance, struck))
        except Failed as error:
            return Round(struck, error.outcome, str(error))
        finally:
            shutil.rmtree(self.work / "copy", ignore_errors=True)

    def _copy(self) -> Path:
        """Copy the whole repository; its results folder."""
        return shutil.copytree(self.home, self.work / "copy", symlinks=True) / "results/small"

    def _results(self, chance: random.Random, struck: str) -> str:
        results = self._copy()
        pattern, verb = FILES[struck]
        path = chance.choice(sorted(path for path in results.glob(pattern) if path.is_file()))
        what = f"{path.relative_to(results)}: {damaged(path, chance)}, then {verb}"
        answer = call(verb, *([] if verb == "reports" else ["small"]))
        if verb == "reports":
            answer = Answer(answer.status, (results.parent / "index.html").read_text(encoding="utf-8"))
        named = str(path) in answer.output or (not path.exists() and "no report yet" in answer.output)
        if answer.refused and not named:
            raise Failed("wrong", f"{what}: refused without its name: {answer.output}")
        outcome = "found" if named else "harmless"
        if not named and verb == "dataset":
            # A record that does not hold counts as missing; what is left of the tables is what it was.
            outcome = "found" if answer.status == 4 and any((results / "raw/.damaged").glob("*")) else outcome
        if outcome == "harmless" and made_of(results) != self.made:
            raise Failed("wrong", f"{what}: status {answer.status}, and other outputs without a word: {answer.output}")
        if chance.random() < HEALED:
            self._healed(results, path, what)
        return outcome

    def _healed(self, results: Path, path: Path, what: str) -> None:
        """Reproduce: all is as it was, or the answer names what stands in the way."""
        answer = self._reproduced(results)
        if answer.refused:
            if str(path) not in answer.output and str(path.parent) not in answer.output:
                raise Failed("wrong", f"{what}, then reproduce: refused without its name: {answer.output}")
        elif answer.status or made_of(results) != self.made:
            raise Failed("wrong", f"{what}, then reproduce: status {answer.status}, not as it was: {answer.output}")

    def _reproduced(self, results: Path) -> Answer:
        return call("reproduce", "small", "--backend", "fake", "--profile", "paper", "--results", results)

    def _evidence(self, chance: random.Random, struck: str) -> str:
        results = self._copy()
        files = [*self.study.glob("evidence/**/*.jsonl"), *(self.work / "copy/kernels/epochs").glob("*.jsonl")]
        path = chance.choice(sorted(files))
        what = f"{path.relative_to(self.work / 'copy')}: {damaged(path, chance)}, then verdicts"
        answer = call("verdicts", "small")
        if answer.refused:
            if path.name not in answer.output:
                raise Failed("wrong", f"{what}: refused without its name: {answer.output}")
            return "found"
        if answer.output == self.verdicts:
            return "harmless"
        check = compare_results(results, StudyFolder(self.study))
        if check.mismatches:
            return "found by comparison"
        if check.compared < self.compared or any(words in answer.output for words in NOT_COUNTED):
            return "less evidence"
        raise Failed("wrong", f"{what}: other verdicts by rows that all are right: {answer.output}")

    def _tiny_cache(self) -> tuple[Path, Path]:
        """A cache folder with an image of a few files, a root composed of it, and a kernel that is none."""
        for name in ("images", "kernels"):
            (self.work / name).mkdir()
        cache = empty_cache(self.work / "images", self.patch)
        open_root(build_image(), CODE, add_code)
        kernels = tiny_kernels(self.work / "kernels", self.patch)
        build_kernel(kernels_folder=kernels)
        return cache, kernels

    def _cached(self, chance: random.Random, of: Path, patterns: tuple[str, ...]) -> tuple[Path, str]:
        """Damage a file of a copy of a cache folder, which takes its place; the file and what was done."""
        cache = self.work / "copy"
        os.makedirs(cache)
        copy_with_links(of, cache / "cache")
        self.patch.setenv("LONGFAT_CACHE", str(cache / "cache"))
        files = sorted(path for pattern in patterns for path in cache.glob(f"cache/{pattern}") if is_file(path))
        path = chance.choice(files)
        if chance.random() < 0.5:
            return path, damaged(path, chance)
        # As a failing disk does: the content is another, size and times are the same.
        facts, content = path.stat(), path.read_bytes()
        with path.open("r+b") as file:
            file.write(bytes([content[0] ^ 1]) if content else b"")
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        return path, "bit rot"

    def _image(self, chance: random.Random, struck: str) -> str:
        path, how = self._cached(chance, self.cache, ("images/*/image.*", "images/*/root/**/*", "roots/*/**/*"))
        what = f"{path.relative_to(self.work / 'copy/cache')}: {how}"
        said: list[str] = []
        try:
            built = build_image()
            root = open_root(built, CODE, add_code, said.append)
        except LongfatError as error:
            if "rm -r " not in str(error):
                raise Failed("wrong", f"{what}: no way out: {error}") from error
            return "found"
        if how == "bit rot" and (found := full_check(built, said)):
            return found
        if content_of(root) != content_of(next(self.cache.glob("roots/*/root"))):
            raise Failed("wrong", f"{what}: a guest would start on it")
        return "mended" if said else "harmless"

    def _kernel(self, chance: random.Random, struck: str) -> str:
        path, how = self._cached(chance, self.work / "kernels/cache", ("kernels/*/*", "**/linux", "**/kernel.json"))
        try:
            kernel = build_kernel(kernels_folder=self.kernels)
        except LongfatError as error:
            if str(path.parent) not in str(error):
                raise Failed("wrong", f"{path}: {how}: refused without its name: {error}") from error
            return "found"
        (whole,) = (self.work / "kernels/cache").glob("**/linux")
        if kernel.path.read_bytes() != whole.read_bytes():
            raise Failed("wrong", f"{path}: {how}: a guest would start it")
        return "harmless"


def full_check(built: ImageBuild, said: list[str]) -> str:
    """What `build image --verify` finds, in a word, "" for nothing: sizes and times alone say less."""
    try:
        build_image(verify=True)
        before = len(said)
        remove_damaged_roots(built, said.append)
        return "found by the full check" if len(said) > before else ""
    except LongfatError:
        return "found by the full check"


def add_code(root: Path) -> None:
    """A laboratory of two files."""
    for name in ("code/longfat/guest/traffic.py", "code/longfat/guest/__pycache__/traffic.pyc"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("8 * total")


def made_of(results: Path) -> dict[str, bytes]:
    """What equal results have equal, and b"" in the place of what cannot be read."""
    try:
        return {name: content for name, content in made(results).items() if name.startswith(OUTPUTS)}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def is_file(path: Path) -> bool:
    """Whether it is a file itself; of a compiled file's folder there are some."""
    return path.is_file() and not path.is_symlink()


def content_of(root: Path) -> dict[str, bytes]:
    """All files by path."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def copy_with_links(source: Path, target: Path) -> None:
    """Copy a tree in which hard links stay what they are, with all times."""
    known: dict[int, str] = {}

    def copy(one: str, other: str) -> str:
        number = os.lstat(one).st_ino
        if number in known:
            os.link(known[number], other)
        else:
            known[number] = shutil.copy2(one, other)
        return other

    shutil.copytree(source, target, symlinks=True, copy_function=copy)
