# SPDX-License-Identifier: Apache-2.0
"""Console blocks of pages, executed in order; a page's files are written between them.

A block is a fenced ``console`` block with a ``$`` before each command and the command's output below it. ``...`` stands
for any lines, or for any text inside a line. Times, sizes, digests and paths are not compared. A comment ``not
executed: REASON`` directly above a block leaves it out.
`python console.py FOLDER` follows the longest pages in a checkout at FOLDER, without pytest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST = tuple(ROOT / name for name in ("README.md", "docs/quickstart.md", "docs/verdicts.md"))
_PART = re.compile(
    r"(?:<!-- not executed: (?P<reason>[^\n]+) -->\n)?(?:`(?P<file>[\w.]+)`:\n\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_ADDITION = re.compile(r"# (\S+), at the end\n")
_MASKS = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|min|h|kB|MB|GB|KiB|MiB|GiB)\b"), "TIME OR SIZE"),
    (re.compile(r"\b[0-9a-f]{8,64}\b"), "DIGEST"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Command:
    """A command of a block and the output that the page shows."""

    line: str
    output: Sequence[str]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``reason`` says why it is not executed, and is empty where it is."""

    kind: str
    text: str
    file: str
    reason: str

    def commands(self) -> Iterator[Command]:
        """Yield the commands of a console block, each with its output."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            line, *output = part.rstrip("\n").split("\n")
            yield Command(re.sub(r"\s+# .*", "", line), output)


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = _PART.finditer(page.read_text(encoding="utf-8"))
    return [Block(one["kind"], one["text"], one["file"] or "", one["reason"] or "") for one in found]


def executed(page: Path) -> bool:
    """Return whether a page has a block that is executed."""
    return any(block.kind == "console" and not block.reason for block in blocks(page))


def prepare(root: Path) -> None:
    """Copy all studies to the checkout ``root``; results stay, except of the study ``buffers``, which pages create."""
    for folder in ("experiments", "kernels", "results/buffers"):
        shutil.rmtree(root / folder, ignore_errors=True)
    for folder in ("experiments", "kernels"):
        shutil.copytree(ROOT / folder, root / folder)


def differences(page: Path, root: Path) -> list[str]:
    """Follow a page and print its commands; return those that print something else than the page shows."""
    prepare(root)
    found, began = [], time.monotonic()
    for command, output in follow(page, root):
        print(f"{time.monotonic() - began:5.0f} s  {page.name}  $ {command.line}", flush=True)  # noqa: T201
        if not agrees(command.output, output):
            found.append(f"{page.name}: another output of $ {command.line}\n{output}")
    return found


def follow(page: Path, root: Path) -> Iterator[tuple[Command, str]]:
    """Do in the checkout ``root`` what a page says, and yield each command with the output that it printed.

    Files are written into the study that the page created last.
    """
    study = root
    for block in blocks(page):
        if block.file:
            (study / block.file).write_text(block.text, encoding="utf-8")
        elif addition := _ADDITION.match(block.text):
            with (study / addition[1]).open("a", encoding="utf-8") as file:
                file.write(block.text)
        elif block.kind == "console" and not block.reason:
            for command in block.commands():
                yield command, _run(command.line, root)
                if created := re.match(r"\./just new (\S+)", command.line):
                    study = root / "experiments" / created[1]


def _run(line: str, root: Path) -> str:
    """Execute a line in the checkout: the recipes of ``./just`` are the commands of ``longfat``."""
    program = f"{sys.executable} -m longfat"
    environment = {
        **os.environ,
        "LONGFAT_ROOT": str(root),
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": "120",
        "NO_COLOR": "1",
    }
    command = ["bash", "-c", re.sub(r"^\./just\b", program, line)]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    output = (done.stdout + done.stderr).replace(f"{root}/", "")
    assert done.returncode == 0, f"$ {line}\n{output}\nexit status {done.returncode}"
    return output


def agrees(expected: Sequence[str], output: str) -> bool:
    """Return whether an output is the expected one, apart from what is masked."""
    lines = [re.escape(_mask(line)).replace(r"\.\.\.", ".*") if line != "..." else None for line in expected]
    pattern = "".join(r"(?:[^\n]*\n)*" if line is None else f"{line}\n" for line in lines)
    text = "".join(f"{_mask(line)}\n" for line in output.splitlines())
    return re.fullmatch(pattern, text) is not None


def _mask(line: str) -> str:
    for pattern, word in _MASKS:
        line = pattern.sub(word, line)
    return line.strip()


if __name__ == "__main__":
    checkout = Path(sys.argv[1])
    checkout.mkdir(parents=True, exist_ok=True)
    if different := [one for page in LONGEST for one in differences(page, checkout.resolve())]:
        sys.exit("\n".join(different))
