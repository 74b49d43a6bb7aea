# SPDX-License-Identifier: Apache-2.0
"""Console blocks of a page, executed in order; the page's files are written between them.

A block is a fenced ``console`` block with a ``$`` before each command and the command's output below it. ``...`` stands
for any lines, or for any text inside a line. Times, sizes, digests and paths are not compared. A comment ``not
executed: REASON`` directly above a block leaves it out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
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
        "PYTHONPATH": str(SOURCE),
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
