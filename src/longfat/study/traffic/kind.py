# SPDX-License-Identifier: Apache-2.0
"""The protocol of kinds of traffic, and the keys of all entries. Must not know any kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FolderPath
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import Field

from longfat.spec.gates import Gate
from longfat.spec.runspec import RunSpec
from longfat.spec.units import Duration, Size
from longfat.study.schema import fields as f
from longfat.study.schema.files import StudyFile
from longfat.study.schema.names import Finding
from longfat.study.traffic.algorithm import Algorithm, AlgorithmUsed

Sides = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of a topology's senders and of its receivers."""


class Entry(f.Closed):
    """An entry of a section, with the keys of every kind."""

    name: f.Name = Field(description="name, unique among all traffic of the experiment")
    sender: f.NodeName = Field(alias="from", description="host that sends")
    receiver: f.NodeName = Field(alias="to", description="host that receives")
    duration: f.Length = Field(description="time for which it sends")
    start: f.Start = Field(default=Duration(0), description="start after the beginning of the run (default 0 s)")

    @property
    def draws(self) -> bool:
        """Whether it depends on the seed of a run."""
        return False

    @property
    def common(self) -> dict[str, Any]:
        """The fields that the records of all kinds share."""
        times = {"duration_us": self.duration.value, "start_us": self.start.value}
        return {"name": self.name, "sender": self.sender, "receiver": self.receiver, **times}

    @property
    def own_files(self) -> tuple[StudyFile, ...]:
        """Files of the study that a run needs; the RunSpec has their digests."""
        return ()

    def each(self, sides: Sides) -> Iterator[Self]:
        """Yield the traffic of the entry, one by one."""
        yield self

    def findings(self) -> Iterator[Finding]:
        """Yield the faults among its keys; paths begin at the entry."""
        return iter(())


class TcpEntry(Entry):
    """An entry whose data are sent with a congestion control."""

    algorithm: AlgorithmUsed = Field(description="a name from `algorithms`, or a mapping like one of its entries")


@dataclass(frozen=True)
class Around:
    """Functions of the study for an entry: the full form of an algorithm, and the request for a window."""

    algorithm: Callable[[str | Algorithm], Algorithm]
    requested_window: Callable[[Size], int]


@dataclass(frozen=True)
class Path:
    """Properties of a run that determine its cost: slowest rate, delays in both directions, smallest MTU."""

    slowest_bps: int
    round_trip_us: int
    mtu_bytes: int


@dataclass(frozen=True)
class Cost:
    """The cost of traffic in virtual time: full data packets, and CPU seconds of its programs."""

    packets: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Column:
    """A column's type and meaning; the meaning is empty for columns that all tables share."""

    type: Literal["text", "whole", "real"]
    meaning: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the dataset with observations of a kind, from one raw file of each run.

    ``file`` is JSON, a list of objects that ``row`` turns into rows, ordered by the first column; or CSV with the same
    columns. ``columns`` are the columns after ``run_id``. ``written`` states whether a run has the file. ``what``
    describes a row. ``rows`` reads them from the run's folder instead, if they come from files of another format; it
    raises ValueError for a faulty one.
    """

    name: str
    file: str
    columns: Mapping[str, Column]
    written: Callable[[RunSpec], bool]
    row: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda report: report
    what: str = ""
    rows: Callable[[FolderPath, RunSpec], Iterable[Mapping[str, Any]]] | None = None


class Kind:
    """A kind of traffic: its gates and its tables of the dataset.

    Gates find the reports of programs in ``Evidence.program_reports``, by the name of the table.
    """

    gates: tuple[Gate, ...] = ()
    tables: tuple[Table, ...] = ()


EntryOf = TypeVar("EntryOf", bound=Entry)
Record = TypeVar("Record")


class Section(Kind, ABC, Generic[EntryOf, Record]):
    """A kind with its own section of an experiment.

    ``model`` is an entry, ``meaning`` describes the section, ``one`` is the word for an entry in messages. If
    ``route_sets_algorithm``, the route of the sending host sets the congestion control of sockets.
    """

    model: type[EntryOf]
    meaning: str
    one: str
    route_sets_algorithm = False

    @abstractmethod
    def record(self, entry: EntryOf, around: Around) -> Record:
        """Return the record of a RunSpec for a single entry (``Entry.each``)."""

    @abstractmethod
    def words(self, record: Record) -> str:
        """Describe it for the report, without name, hosts and duration."""

    @abstractmethod
    def cost(self, record: Record, path: Path) -> Cost:
        """Return its cost on a path without other traffic."""

    def drawn(self, record: Record) -> str:
        """Return the label of its arrow in the figure of the network; may be empty."""
        return ""
