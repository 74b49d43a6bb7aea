# SPDX-License-Identifier: Apache-2.0
"""What a kind of traffic is: the protocol of the modules in this package, and the keys that all entries have.

Must not know any kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import Field

from longfat.gates import Gate
from longfat.runspec import RunSpec
from longfat.schema import fields as f
from longfat.schema.closed import Closed
from longfat.schema.files import StudyFile
from longfat.schema.names import Finding
from longfat.traffic.algorithm import Algorithm, AlgorithmUsed
from longfat.units import Duration, Size

Sides = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of a topology's senders and of its receivers."""


class Entry(Closed):
    """An entry of a kind's section: the keys that those of every kind have."""

    name: f.Name = Field(description="name, unique among all traffic of the experiment")
    sender: f.NodeName = Field(alias="from", description="host that sends")
    receiver: f.NodeName = Field(alias="to", description="host that receives")
    duration: f.Length = Field(description="time for which it sends")
    start: f.Start = Field(default=Duration(0), description="start after the beginning of the run (default 0 s)")

    @property
    def draws(self) -> bool:
        """Whether anything of it is drawn from a run's seed."""
        return False

    @property
    def own_files(self) -> tuple[StudyFile, ...]:
        """Files of the study that a run needs beside its RunSpec, which has their digests."""
        return ()

    def each(self, sides: Sides) -> Iterator[Self]:
        """Each single traffic that the entry stands for."""
        yield self

    def findings(self) -> Iterator[Finding]:
        """What is wrong among its keys, whose single values are all right; paths begin at the entry."""
        return iter(())


class TcpEntry(Entry):
    """An entry whose data are sent with a congestion control."""

    algorithm: AlgorithmUsed = Field(description="a name from `algorithms`, or a mapping like one of its entries")


@dataclass(frozen=True)
class Around:
    """What an entry needs of its study: an algorithm's full form, and what is asked of a socket for a window."""

    algorithm: Callable[[str | Algorithm], Algorithm]
    requested_window: Callable[[Size], int]


@dataclass(frozen=True)
class Path:
    """What the cost of traffic depends on: the slowest rate, delays there and back, the smallest MTU of a run."""

    slowest_bps: int
    round_trip_us: int
    mtu_bytes: int


@dataclass(frozen=True)
class Cost:
    """What traffic costs a run in virtual time: full data packets, and seconds of its programs besides."""

    packets: float = 0.0
    seconds: float = 0.0


def _as_it_is(report: Mapping[str, Any]) -> Mapping[str, Any]:
    return report


@dataclass(frozen=True)
class Table:
    """A table of the dataset with what a kind observes, from one raw file of each run.

    ``file`` is JSON, a list of objects of which ``row`` makes the columns, ordered by the first column; or CSV with
    the very columns. ``columns`` are those after ``run_id``. ``written`` tells whether a run has the file.
    ``what`` says what its rows are, ``meanings`` what its columns are that no other table has.
    """

    name: str
    file: str
    columns: Mapping[str, Literal["text", "whole", "real"]]
    written: Callable[[RunSpec], bool]
    row: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _as_it_is
    what: str = ""
    meanings: Mapping[str, str] = field(default_factory=dict)


class Kind:
    """A kind of traffic: its gates and its tables of the dataset.

    A gate finds what programs reported in ``Evidence.told``, under the name of the table whose file is JSON.
    """

    gates: tuple[Gate, ...] = ()
    tables: tuple[Table, ...] = ()


EntryOf = TypeVar("EntryOf", bound=Entry)
Record = TypeVar("Record")


class Section(Kind, ABC, Generic[EntryOf, Record]):
    """A kind with a section of an experiment to itself: from its entries to what a run is told, and its words.

    ``model`` is an entry. ``meaning`` is what the section is. ``one`` is what an
    entry is called in messages, and ``some`` the same with its article. Where ``route_sets_algorithm``, sockets have
    their congestion control from the route of the host that sends.
    """

    model: type[EntryOf]
    meaning: str
    one: str
    route_sets_algorithm = False

    @property
    def some(self) -> str:
        """What an entry is called, with its article."""
        return self.one

    @abstractmethod
    def record(self, entry: EntryOf, around: Around) -> Record:
        """What the RunSpec says of an entry, of which there is one only (``Entry.each``)."""

    @abstractmethod
    def words(self, record: Record) -> str:
        """What it is, beside its name, hosts and duration, for the report."""

    @abstractmethod
    def cost(self, record: Record, path: Path) -> Cost:
        """What it costs on a path that it has to itself."""

    def drawn(self, record: Record) -> str:
        """What stands beside its arrow in the picture of the network; may be empty."""
        return ""
