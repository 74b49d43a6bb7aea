# SPDX-License-Identifier: Apache-2.0
"""Programs of the user: any sending and any receiving program, whose packets are counted on the wire."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from longfat.spec.gates import Evidence
from longfat.spec.runspec import Program as Record
from longfat.study.schema import fields as f
from longfat.study.schema.files import FileName, OwnFile, StudyFile
from longfat.study.schema.names import Finding
from longfat.study.traffic import qlog
from longfat.study.traffic.kind import Around, Column, Cost, Entry, Path, Section, Table

MOST_KEPT = 16  # files of one entry
WORDS = ("{address}", "{port}", "{seconds}", "{seed}")
SECONDS_PER_PACKET = 3e-5  # for a system call at both ends, without the hops


class Program(Entry):
    """A program that sends, on one host, and one that receives, on another."""

    examples: ClassVar[tuple[str, ...]] = (
        '{name: own, from: client1, to: server, send: "iperf -u -c {address} -p {port} -t {seconds} -b 2M", '
        'receive: "iperf -u -s -p {port}", duration: 60 s}',
    )

    send: f.Text = Field(
        description="command line of the sender, from `start` on; {address} (the receiver's), {port}, {seconds} and "
        "{seed} are replaced in it"
    )
    receive: f.Text = Field(
        description="command line of the receiver, which starts before the run and opens a socket of `port`"
    )
    files: tuple[OwnFile, ...] = Field(
        default=(), description="files next to study.yaml that are copied to the programs' working folder"
    )
    keep: tuple[FileName, ...] = Field(
        default=(),
        max_length=MOST_KEPT,
        description="plain files that the programs leave in their working folder and that come back with the raw run, "
        f"at most {MOST_KEPT} of {Record.most_kept_bytes >> 20} MiB each; a run that lacks one does not count. Files "
        f"NAME{' and NAME'.join(qlog.SUFFIXES)} are read as qlog into the table `qlog`",
    )
    port: Annotated[int, Field(strict=True, ge=1024, le=65535)] = Field(
        default=4433, description="UDP or TCP port of the receiver, whose packets are counted (default 4433)"
    )

    def findings(self) -> Iterator[Finding]:
        """Yield command lines that cannot be split, unknown words, and files given twice."""
        for key, line in (("send", self.send), ("receive", self.receive)):
            try:
                shlex.split(line)
            except ValueError as error:
                yield Finding((key,), f"{line!r} is not a command line: {str(error).lower()}")
            for word in re.findall(r"\{\w*\}", line):
                if word not in WORDS:
                    yield Finding((key,), f"unknown word {word}; allowed: {', '.join(WORDS)}")
        for key, names in (("files", [file.name for file in self.own_files]), ("keep", list(self.keep))):
            if double := next((name for name in names if names.count(name) > 1), None):
                yield Finding((key,), f"{double!r} is given twice; each file is given once")

    @property
    def own_files(self) -> tuple[StudyFile, ...]:
        """The files of the study."""
        return self.files


def programs_were_counted(evidence: Evidence) -> Iterator[str]:
    """Require that packets of each program arrived, and that every packet was counted."""
    reports = {report["programs"]: report for report in evidence.program_reports.get("programs", ())}
    for one in evidence.spec.programs:
        report = reports.get(one.name)
        if report is None or not report["received_packets"]:
            yield f"no packet of program {one.name} arrived for port {one.port}"
        elif report["uncounted_packets"]:
            yield f"{report['uncounted_packets']} packets of program {one.name} were not counted, allowed 0"


def programs_ended_well(evidence: Evidence) -> Iterator[str]:
    """Require that each program ended with status 0, or ran until it was terminated."""
    for item in evidence.achieved.get("programs", ()):
        if item["status"] and not item["asked"]:
            said = " ".join(item["said"].split())[-300:] or "nothing"
            what = f"what {item['role']}s of program {item['programs']}"
            yield f"{what} ended with status {item['status']}; it said: {said}"


def programs_left_their_files(evidence: Evidence) -> Iterator[str]:
    """Require every file to keep."""
    found = {(item["programs"], item["file"]): item["reason"] for item in evidence.achieved.get("program_files", ())}
    for one in evidence.spec.programs:
        for name in one.keep:
            if reason := found.get((one.name, name), "it was not looked for"):
                yield f"file {name} of program {one.name} was not kept: {reason}"


class Programs(Section[Program, Record]):
    """The kind of the user's programs."""

    model = Program
    meaning = "programs of the user that send and receive"
    one = "program"
    gates = (programs_were_counted, programs_ended_well, programs_left_their_files)
    tables = (
        Table(
            "programs",
            "programs.json",
            {
                "programs": Column("text", "name of the programs in the study"),
                "sender": Column("text"),
                "receiver": Column("text"),
                "start_us": Column("whole"),
                "end_us": Column("whole"),
                "received_packets": Column("whole", "packets received"),
                "received_bytes": Column("whole", "bytes received, IPv4 headers included"),
                "payload_bytes": Column("whole", "bytes received, without headers of IPv4 and UDP or TCP"),
                "uncounted_packets": Column("whole", "packets that could not be counted"),
            },
            written=lambda spec: bool(spec.programs),
            what="One row for each pair of the user's programs.",
        ),
        Table(
            "program_packets",
            "program_packets.csv",
            {
                "t_us": Column("whole"),
                "programs": Column("text", "name of the programs in the study"),
                "received_packets": Column("whole", "packets received so far"),
                "received_bytes": Column("whole", "bytes received so far, IPv4 headers included"),
                "payload_bytes": Column("whole", "bytes received so far, without headers of IPv4 and UDP or TCP"),
            },
            written=lambda spec: bool(spec.programs),
            what="Samples of what has reached the receiving program.",
        ),
        qlog.TABLE,
    )

    def record(self, entry: Program, around: Around) -> Record:
        """Return the programs in the guest's form: command lines as words, files by digest."""
        return Record(
            **entry.common,
            send=tuple(shlex.split(entry.send)),
            receive=tuple(shlex.split(entry.receive)),
            port=entry.port,
            files={file.name: file.digest for file in entry.own_files},
            keep=entry.keep,
        )

    def words(self, record: Record) -> str:
        """Return the command lines and the files."""
        files = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(record.files.items()))
        return f"{shlex.join(record.send)} to {shlex.join(record.receive)}" + (f" ({files})" if files else "")

    def cost(self, record: Record, path: Path) -> Cost:
        """Return the cost at the path's rate, in packets of its MTU."""
        packets = path.slowest_bps * record.duration_us / 8e6 / path.mtu_bytes
        return Cost(packets, packets * SECONDS_PER_PACKET)

    def drawn(self, record: Record) -> str:
        """Return the word for it."""
        return "program"


KIND = Programs()
