# SPDX-License-Identifier: Apache-2.0
"""Seeded mutations: of the bytes of a file, of what stands under a path, of the text of a YAML file."""

from __future__ import annotations

import os
import random
import re
import shutil
from pathlib import Path

WORDS = (
    *(
        "",
        "null",
        "{}",
        "[]",
        "{a: 1}",
        "[1, x]",
        "-1",
        "0",
        "1e99",
        ".nan",
        ".inf",
        "true",
        "'",
        '"',
        "!!x",
        "&a",
        "*a",
    ),
    *("[" * 60, ": ", "\n", "\t", "é", "\x00", "\ufeff", "- ", "? ", "|", ">-", "%", "@", "${x}", "${algorithm}"),
    *("1 s", "0 s", "1 bit/s", "999 Tbit/s", "1 B", "9999 GiB", "100 %", "2003-01-01", "0x10", "1_000", "12:30:45"),
    *(
        "goodput",
        "goodput[delay]",
        "alike(goodput)",
        "1 / 0",
        "a < b < c",
        "for x",
        "in x",
        "=",
        "<=",
        "(",
        ")",
        "[",
        "]",
    ),
)
NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "3.5",
    "1e9",
    "1e-9",
    "1e400",
    "99999999999999999999",
    "007",
    "0.1",
    "1000",
    "60",
    "1/3",
)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
TEXT_KINDS = {
    "number": 6,
    "twin": 6,
    "line out": 2,
    "lines swapped": 2,
    "value": 2,  # these often leave a sensible file
    "word": 2,
    "line in": 1,
    "indented": 1,
    "cut": 1,
}


def key_of(line: str) -> str:
    """What stands before the first colon, indentation included: lines with the same are at home in the same place."""
    return line.partition(":")[0]


def damaged(path: Path, chance: random.Random) -> str:
    """Damage a file, and say how; the content of what stands there afterwards is another, or nothing is there."""
    content = path.read_bytes()
    kinds = ["flip", "cut", "empty", "add", "zeros", "delete", "folder", "link"]
    kind = chance.choices(kinds, weights=[8, 3, 1, 2, 2, 1, 1, 1])[0] if content else chance.choice(["add", "delete"])
    if kind in ("delete", "folder", "link"):
        path.unlink()
        if kind == "folder":
            path.mkdir()
        if kind == "link":
            path.symlink_to(chance.choice([path.name, "/nonexistent", "/dev/null", "."]))
        return kind
    at = chance.randrange(len(content) + 1)
    if kind == "flip":
        at = min(at, len(content) - 1)
        content = content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]
    elif kind == "cut":
        content = content[: min(at, len(content) - 1)]
    elif kind == "empty":
        content = b""
    elif kind == "add":
        content = content[:at] + chance.randbytes(chance.randrange(1, 40)) + content[at:]
    else:
        length = chance.randrange(1, 512)
        content = content[:at] + bytes(length) + content[at + length :]
        content += b"\0" if content == path.read_bytes() else b""
    replace(path, content)
    return kind


def replace(path: Path, content: bytes) -> None:
    """Write a file's content into a new file in its place, as hard links share the former one."""
    draft = path.with_name(f"{path.name}.mutant")
    draft.write_bytes(content)
    shutil.copymode(path, draft)
    os.replace(draft, path)


def another_text(text: str, others: list[str], chance: random.Random) -> str:
    """The text of a YAML file with one to three things changed; ``others`` are lines to take in."""
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        lines = text.splitlines() or [""]
        at = chance.randrange(len(lines))
        kind = chance.choices(list(TEXT_KINDS), weights=list(TEXT_KINDS.values()))[0]
        line = lines[at]
        if kind == "value" and ": " in line:
            key, _, _ = line.partition(": ")
            lines[at] = f"{key}: {chance.choice([*WORDS, chance.choice(others).partition(': ')[2]])}"
        elif kind == "number" and (numbers := [at for at, each in enumerate(lines) if NUMBER.search(each)]):
            at = chance.choice(numbers)
            found = chance.choice(list(NUMBER.finditer(lines[at])))
            lines[at] = lines[at][: found.start()] + chance.choice(NUMBERS) + lines[at][found.end() :]
        elif kind == "twin" and (twins := [one for one in others if key_of(one) == key_of(line)]):
            lines[at] = chance.choice(twins)
        elif kind == "line out":
            del lines[at]
        elif kind == "line in":
            lines.insert(at, chance.choice(others))
        elif kind == "lines swapped":
            to = chance.randrange(len(lines))
            lines[at], lines[to] = lines[to], lines[at]
        elif kind == "indented":
            lines[at] = line[2:] if chance.random() < 0.5 else f"  {line}"
        elif kind == "cut":
            del lines[at:]
        else:
            place, length = chance.randrange(len(line) + 1), chance.randrange(8)
            lines[at] = line[:place] + chance.choice(WORDS) + line[place + length :]
        text = "\n".join(lines) + "\n"
    return text
