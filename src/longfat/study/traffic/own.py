# SPDX-License-Identifier: Apache-2.0
"""Files of a study that become part of a kernel: C files, each with a congestion control, and patches.

Owns the checks of a C file before it is compiled: its name, and its table of parameters for the kernel's
``DEFINE_TCP_CC_PARAMS`` (kernels/patches/0009).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

import yaml

from longfat.study.catalog.ccas import CCAS, UNITS, Cca, Parameter
from longfat.study.catalog.kernels import Piece
from longfat.study.schema.fields import fault, is_name
from longfat.study.schema.files import read_file
from longfat.study.schema.names import shown, unknown
from longfat.system.errors import Problem

PROGRAM = ("send", "receive")
"""Files in the folder of a program."""

MAX_BYTES = 4_000_000  # a patch series in one file has about 100 kB

_FILE = re.compile(r"tcp_([a-z][a-z0-9_]{0,14})\.c")  # TCP_CA_NAME_MAX is 16, its end included
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_TABLE = re.compile(r"\bstruct\s+tcp_cc_param\s+(\w+)_params\s*\[\s*\]\s*=\s*\{(.*?)\}\s*;", re.S)
_ENTRY = re.compile(r'\{\s*"(\w+)"((?:\s*,[^,{}"]+){3}),?\s*\}')
_NUMBER = r"\s*(?:[0-9]{1,18}[uUlL]*|TCP_CC_PPM)\s*"
_EXPRESSION = re.compile(rf"\s*[-+]?{_NUMBER}(?:[-+*/]{_NUMBER})*")
_PRODUCT = re.compile(r"([-+]?)([^-+]+)")
_FACTOR = re.compile(r"([*/]?)\s*(\w+)")
_NUMBERS = {"TCP_CC_PPM": 1_000_000}


@dataclass(frozen=True)
class OwnAlgorithm:
    """A congestion control of a study: its entry as in the catalogue, and its C file."""

    cca: Cca
    file: Piece


def faults_of(given: str) -> Iterator[Problem]:
    """Yield the faults of an algorithm on the command line: a name, a C file or the folder of a program."""
    path = Path(given)
    if path.is_dir():
        if not (is_name(path.name) and path.name[0].isalpha()) or yaml.safe_load(path.name) != path.name:
            allowed = "allowed: a letter, then up to 63 of a-z, 0-9, '_', '-' and '.', and no word of YAML such as null"
            yield Problem(given, None, "", f"{path.name!r} cannot name a program", allowed)
        for name in PROGRAM:
            if not (path / name).is_file():
                hint = "a program is a folder with the programs `send ADDRESS PORT SECONDS` and `receive PORT`"
                yield Problem(given, None, "", f"no file {name!r}", hint)
    elif given.endswith(".c") or "/" in given:
        if not path.is_file():
            yield Problem(given, None, "", "no such file", "give a C file with a congestion control, tcp_NAME.c")
        elif not _FILE.fullmatch(path.name):
            yield Problem(given, None, "", "the file's name is not tcp_NAME.c", "NAME is the algorithm's `.name`")
    elif given not in CCAS:
        yield Problem("ALGORITHM", None, "", *unknown("algorithm", given, CCAS))


def own_algorithm(folder: Path, name: str) -> OwnAlgorithm:
    """Read the congestion control in the C file ``name`` of a study's folder.

    Raises a fault of the manifest for a wrong file.
    """
    given = _FILE.fullmatch(PurePosixPath(name).name)
    if not given:
        raise fault(
            f"{shown(name)} is not the name of a C file with a congestion control",
            "call it tcp_NAME.c, with the algorithm's NAME: a letter, then up to 14 of a-z, 0-9 and '_'",
        )
    if given[1] in CCAS:
        message = f"{shown(given[1])} is a congestion control of the kernel"
        raise fault(message, "give the file, and the algorithm that it registers, another name")
    file = own_file(folder, name)
    facts = file.path.stat()
    return OwnAlgorithm(_described(given[1], name, str(file.path), facts.st_mtime_ns, facts.st_size), file)


def own_file(folder: Path, name: str) -> Piece:
    """Return the file ``name`` of a study's folder. Raises a fault of the manifest if it cannot be used."""
    content = read_file(folder, name)
    if not content or len(content) > MAX_BYTES:
        raise fault(f"{shown(name)} has {len(content)} bytes; allowed: 1 to {MAX_BYTES}")
    return Piece(name, folder / name, hashlib.sha256(content).hexdigest())


@lru_cache(maxsize=64)
def _described(cca: str, name: str, path: str, _changed: int, _size: int) -> Cca:
    """Return the entry that the C file describes; a changed file is read again. Raises a fault."""
    try:
        raw = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise fault(f"{shown(name)} is not UTF-8 text: byte {error.start}") from error
    text = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), raw)
    if not re.search(rf'\.name\s*=\s*"{cca}"', text):
        raise fault(f'{shown(name)} registers no congestion control called "{cca}"', f'it needs .name = "{cca}"')
    parameters = {_unit(one.sysctl)[0]: one for one in _parameters(cca, name, text)}
    return Cca(cca, name, {key: parameters[key] for key in parameters})


def _parameters(cca: str, name: str, text: str) -> Iterator[Parameter]:
    table = _TABLE.search(text)
    if table is None:
        return
    where = f"{name}:{text[: table.start()].count(chr(10)) + 1}"
    if table[1] != cca or not re.search(rf"\bDEFINE_TCP_CC_PARAMS\(\s*{cca}\s*\)", text):
        hint = f"call the table {cca}_params, and let DEFINE_TCP_CC_PARAMS({cca}) follow it"
        raise fault(f"{where}: the table is not for {shown(cca)}", hint)
    entries = _ENTRY.findall(table[2])
    if len(entries) != table[2].count("{"):
        hint = 'an entry is { "name", initial, least, most }'
        raise fault(f"{where}: the table of parameters cannot be read", hint)
    for key, numbers in entries:
        sysctl = f"net.ipv4.tcp_{cca}.{key}"
        initial, least, most = (_whole(number, where) for number in numbers.split(",")[1:])
        yield Parameter(sysctl, _unit(sysctl)[1], least, most, initial, f"as {name} says")


def _unit(sysctl: str) -> tuple[str, int]:
    """Return a parameter's name in a manifest, and the sysctl value that is 1 there."""
    key = sysctl.rpartition(".")[2]
    name, _, unit = key.rpartition("_")
    return (name, UNITS[unit]) if name and unit in UNITS else (key, 1)


def _whole(text: str, where: str) -> int:
    """Evaluate a C expression of whole numbers and TCP_CC_PPM, without parentheses."""
    if not _EXPRESSION.fullmatch(text):
        hint = "write whole numbers and TCP_CC_PPM, with + - * / between them"
        raise fault(f"{where}: {shown(text.strip())} is not a whole number", hint)
    total = 0
    for sign, product in _PRODUCT.findall(text):
        value = 1
        for operator, word in _FACTOR.findall(product):
            number = _NUMBERS.get(word) or int(word.rstrip("uUlL"))
            value = value // max(number, 1) if operator == "/" else value * number
        total += -value if sign == "-" else value
    return total
