# SPDX-License-Identifier: Apache-2.0
"""Answers of other machines: each is used whole, or is a failure of that host with a name.

A round draws the archive of a record, or a message of a host of a lab. Bad are a file outside of the folder that was
written, moved or read, an error of another kind than the project's, and no end in time.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import plan_of
from fake_backend import FakeBackend

from longfat.backends.testbed.connect.answers import checked, read_message
from longfat.backends.testbed.inventory import Host
from longfat.execute.attempt import Attempt, attempt_run
from longfat.execute.record.merge import pack, receive
from longfat.system.errors import LongfatError

LONG_S = 30.0
VERBS = ("here", "look", "clock", "ready", "paths", "measured", "done", "collect", "end", "failed", "live", "")
LEAVES: tuple[Any, ...] = (
    *(None, True, 0, -1, 7, 10**30, -(2**63), 0.5, float("nan")),
    *("", "x", "\x1b]0;a\x07", "9" * 5000, [], {}),
)
KEYS = (
    *("nodes", "interfaces", "kernel", "ccas", "release", "programs", "sysctls", "cards", "build", "address"),
    *("0", "eth0"),
)
KINDS = (
    *(tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.CONTTYPE),
    *(tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE, tarfile.REGTYPE, b"?"),
)
RAW = (b"[" * 100_000, b"", b"\0" * 50, b"hello", b"\xff\xfe{}", b'{"here": 1', b'{"a": 1, "b": 2}', b"9" * 10_000)
HOST = Host("sender", "sender", "192.0.2.1", 22, "root", ("one",), "")


def prepare(work: Path, patch: pytest.MonkeyPatch) -> Callable[[random.Random], str]:
    """Make a record and files that no answer may reach; return the round."""
    (run,) = plan_of(1)
    attempt_run(FakeBackend(), Attempt("a", run.spec, 1, last=True), work / "there")
    whole = pack(work / "there/a")
    outside = work / "outside"
    (outside / "sub").mkdir(parents=True)
    for name in ("secret", "sub/file"):
        (outside / name).write_text("untouched", encoding="ascii")
    here = contents(outside)

    def play(chance: random.Random) -> str:
        raw = Path(tempfile.mkdtemp(prefix="raw-", dir=work))
        began = time.monotonic()
        kind = chance.choice(["archive", "message"])
        try:
            if kind == "archive":
                record = receive(hostile(whole, outside, chance), raw, "b", run.run_id)
                assert contents(record.folder) == contents(work / "there/a"), "a changed record was accepted"
            else:
                verb = chance.choice(VERBS[:9])
                line = chance.choice([*RAW, answer(chance), answer(chance), answer(chance), answer(chance)])
                checked(verb, read_message(line, "sender"), "sender")
            outcome, named = "used", True
        except LongfatError as error:
            outcome, named = "refused", kind == "archive" or error.where == "sender"
        assert named, "no host is named"
        left = [path.name for path in raw.iterdir() if outcome == "refused" or path.name != "b"]
        assert not left, f"left in the results: {left}"
        assert contents(outside) == here, "a file outside was changed"
        assert time.monotonic() - began < LONG_S
        return f"{kind} {outcome}"

    return play


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def hostile(whole: bytes, outside: Path, chance: random.Random) -> bytes:
    """Return the archive of a record with entries added, changed or cut, perhaps compressed."""
    if chance.random() < 0.1:
        return chance.choice([b"", b"\x1f\x8b", whole[: chance.randrange(len(whole))], b"x" * 2000, whole])
    content = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(whole)) as old,
        tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        members = old.getmembers()
        at = chance.randrange(len(members))
        for number, member in enumerate(members):
            file = old.extractfile(member)
            assert file is not None
            data = file.read()
            if number == at and chance.random() < 0.7:
                data, member = changed(data, member, outside, chance)
            new.addfile(member, io.BytesIO(data))
            if number == at and chance.random() < 0.5:
                entry = tarfile.TarInfo(name(outside, chance))
                entry.type, entry.linkname = chance.choice(KINDS), name(outside, chance)
                new.addfile(entry)
    packed = content.getvalue()
    if chance.random() < 0.2:
        at = chance.randrange(len(packed))
        packed = packed[:at] + bytes([chance.randrange(256)]) + packed[at + 1 :]
    return gzip.compress(packed, 1) if chance.random() < 0.3 else packed


def changed(
    data: bytes, member: tarfile.TarInfo, outside: Path, chance: random.Random
) -> tuple[bytes, tarfile.TarInfo]:
    """Return an entry with another name, type, size or content."""
    kind = chance.choice(["name", "type", "link", "content", "header", "nothing"])
    if kind == "name":
        member.name = name(outside, chance)
    elif kind == "type":
        member.type = chance.choice(KINDS)
    elif kind == "link":
        member.type, member.linkname, member.size = tarfile.SYMTYPE, name(outside, chance), 0
    elif kind == "content":
        data = chance.choice([b"", b"{}", data + b"\n", data[:-1], b"[" * 5000])
        member.size = len(data)
    elif kind == "header":
        member.pax_headers = {
            "comment": "x" * chance.choice([10, 1 << 19, 1 << 22]),
            "size": chance.choice(["-1", "x", str(len(data))]),
        }
    return data, member


def name(outside: Path, chance: random.Random) -> str:
    """Return a name that leads elsewhere, or nowhere."""
    return chance.choice([
        str(outside / "secret"), f"../{outside.name}/secret", "raw", "raw/../../x", "a/" * 300 + "b", "x" * 300,
        "run.json", "SHA256SUMS", "new\nline", "\x1b[2J", "a\0b", ".", "", "/", "C:\\x", "iperf", "spec.json/x", "é",
    ])  # fmt: skip


def answer(chance: random.Random) -> bytes:
    """Return a message with a drawn verb and a value of any form."""
    return json.dumps({chance.choice(VERBS): value(chance, 4)}).encode()


def value(chance: random.Random, depth: int) -> Any:
    """Return a value of JSON with the names that answers use."""
    kind = chance.random()
    if depth == 0 or kind < 0.4:
        return chance.choice(LEAVES)
    if kind < 0.6:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(KEYS): value(chance, depth - 1) for _ in range(chance.randrange(6))}
