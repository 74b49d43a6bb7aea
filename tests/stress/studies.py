# SPDX-License-Identifier: Apache-2.0
"""Folders of other people: they are data, and nothing in them is executed, followed or obeyed.

A round adds one to three hostile files to a copy of a study outside of the repository, and calls `check`, `plan`,
`report` and `package`. Bad are a program that ran, a secret or a control character in any output, a page that loads
something, and an error that names no file.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from fabricated_results import make_results, write_study

from longfat.system.text import has_controls
from stress.commands import SOURCE, call

FILES = ("study.yaml", "claims.yaml", "figures.yaml", "README.md", "metrics.py")
SECRET = "a-secret-of-the-user"
LOADS = re.compile(
    r"<(?:img|link|script|iframe|object|embed|video|audio|source)\b[^>]*\b(?:src|href|data)=.?(?:https?:|//)"
)
CONTROLS = ("\\e]0;title\\a", "\\e[2J", "\\x9b31m", "\\u202E", "\\x08\\x08", "\\0")
MATHS = ("$\\frac{$", "$5 and $6", "$$", "$\\undefined$", "\\$", "{", "%s", "<script>alert(1)</script>", "&#27;")
Plant = Callable[[random.Random, Path, Path], None]


def remove(path: Path) -> None:
    """Remove what an earlier plant may have put there, also a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def link(chance: random.Random, study: Path, secret: Path) -> None:
    """Put a link that leaves the folder in place of a file, or next to the files."""
    path = study / chance.choice([*FILES, "notes.txt", "data/table.csv", ".hidden"])
    path.parent.mkdir(exist_ok=True)
    remove(path)
    path.symlink_to(chance.choice([secret, Path(os.path.relpath(secret, path.parent)), secret.parent, Path(path.name)]))


def pipe(chance: random.Random, study: Path, _: Path) -> None:
    """Put a pipe, a folder or a huge file with a hole in place of a file."""
    path = study / chance.choice([*FILES, "extra.csv"])
    remove(path)
    kind = chance.choice(["pipe", "folder", "hole"])
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(chance.choice([1 << 21, 1 << 33]))


def noise(chance: random.Random, study: Path, _: Path) -> None:
    """Put bytes that are no UTF-8 into a file."""
    path = study / chance.choice(FILES)
    content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    at = chance.randrange(len(content) + 1)
    remove(path)
    path.write_bytes(content[:at] + bytes([chance.randrange(128, 256)]) * chance.randint(1, 9) + content[at:])


def program(chance: random.Random, study: Path, _: Path) -> None:
    """Put a program in place of the study's own metrics, which leaves a mark or ends the process."""
    body = chance.choice(["raise SystemExit(0)", "raise GeneratorExit", "import os; os._exit(0)", "while True: pass"])
    path = study / "metrics.py"
    remove(path)
    path.write_text(
        f"from pathlib import Path\nPath({str(study.parent / 'ran')!r}).touch()\n{body}\n", encoding="utf-8"
    )


def words(chance: random.Random, study: Path, _: Path) -> None:
    """Put words that a terminal, a drawing or a browser would obey into a text."""
    path = study / chance.choice(["claims.yaml", "figures.yaml", "study.yaml"])
    if path.is_file() and not path.is_symlink():
        text = path.read_text(encoding="utf-8", errors="replace")
        word = chance.choice([*CONTROLS, *(one.replace("\\", "\\\\") for one in MATHS)])
        found = [*re.finditer(r"^( *(?:- )?(?:statement|title|where|hypothesis)): .*$", text, re.MULTILINE)]
        if found:
            one = chance.choice(found)
            path.write_text(f'{text[: one.start()]}{one[1]}: "{word} x"{text[one.end() :]}', encoding="utf-8")


def page(chance: random.Random, study: Path, _: Path) -> None:
    """Write a README that would load something, or with control characters."""
    image = chance.choice(
        ["![a](https://{}/x.png)", "![a][b]\n\n[b]: //{}/x", '<img src="https://{}/x">', "\x1b]0;{}\x07"]
    )
    text = f"# A\nCited.\n\n{image.format('tracker.example')}\n\n## Answer\n{image.format('tracker.example')}\n"
    remove(study / "README.md")
    (study / "README.md").write_text(text, encoding="utf-8")


PLANTS: Mapping[str, Plant] = {one.__name__: one for one in (link, pipe, noise, program, words, page)}


def prepare(work: Path, patch: pytest.MonkeyPatch) -> Callable[[random.Random], str]:
    """Fabricate the results of a small study; return the round."""
    small, results = write_study(work / "small"), work / "small/results"
    make_results(small, results)
    secret = work / "home/secret.yaml"
    secret.parent.mkdir()
    secret.write_text(f"{SECRET}: 1\n", encoding="utf-8")
    (work / "root/experiments").mkdir(parents=True)
    shutil.copyfile(SOURCE.parent / "CITATION.cff", work / "root/CITATION.cff")
    patch.setenv("LONGFAT_ROOT", str(work / "root"))
    patch.setenv("LONGFAT_CACHE", str(work / "cache"))

    def play(chance: random.Random) -> str:
        study = work / "copy" / small.name
        shutil.copytree(small, study)
        kinds = chance.sample(sorted(PLANTS), chance.choice([1, 1, 2, 3]))
        try:
            for kind in kinds:
                PLANTS[kind](chance, study, secret)
            outcomes = [_called(verb, study, results) for verb in ("check", "plan", "report", "package")]
            assert not (study.parent / "ran").exists(), f"{kinds}: a program ran"
            assert secret.read_text(encoding="utf-8") == f"{SECRET}: 1\n", f"{kinds}: the secret was changed"
            return f"{'+'.join(sorted(kinds))}: {outcomes[0]}"
        finally:
            shutil.rmtree(work / "copy")

    return play


def _called(verb: str, study: Path, results: Path) -> str:
    """Call a command on the study, and look at everything that it wrote."""
    target = study.parent / "package.zip"
    place = {"report": ["--results", results], "package": ["--results", results, "--output", target]}
    answer = call(verb, study, *place.get(verb, []))
    assert not has_controls(answer.output.replace("\r", "")), f"{verb}: a control character: {answer.output!r}"
    assert SECRET not in answer.output, f"{verb}: {answer.output}"
    assert answer.status in (0, 2, 3, 4), f"{verb}: {answer.output}"
    if answer.refused:
        named = (str(study), str(results), *FILES)
        assert any(name in answer.output for name in named), f"{verb}: {answer.output}"
        return "refused"
    if verb == "report":
        text = (results / "report.html").read_text(encoding="utf-8")
        assert not LOADS.search(text), f"the report loads {LOADS.search(text)}"
        assert SECRET not in text, "the report has a secret"
    if verb == "package":
        with zipfile.ZipFile(target) as packed:
            held = [name for name in packed.namelist() if SECRET.encode() in packed.read(name)]
            assert not held, f"the package has a secret: {held}"
            assert not any(
                part[0] == "." for name in packed.namelist() if name.startswith("study/") for part in name.split("/")
            )
    return "accepted"
