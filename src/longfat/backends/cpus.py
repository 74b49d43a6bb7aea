# SPDX-License-Identifier: Apache-2.0
"""Which CPU a guest runs on, of those that guests of all commands of a user share. Pins nothing."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from longfat.locks import held


@contextmanager
def one_cpu(scratch: Path) -> Iterator[int]:
    """A CPU of this process that no other guest has, or else one that the fewest have.

    A guest and its programs take turns, so a second CPU never helps; on one CPU each turn costs a context switch,
    on two it costs waking the other one, which makes a short run four times as long.
    """
    with ExitStack() as own:
        yield _take_cpu(sorted(os.sched_getaffinity(0)), scratch, own)


def _take_cpu(cpus: Sequence[int], scratch: Path, own: ExitStack) -> int:
    """Of each CPU the first place, then of each the second, and so on; what is taken ends with ``own``."""
    for place in itertools.count(1):
        for cpu in cpus:
            with suppress(BlockingIOError):
                own.enter_context(held(scratch / f"cpu{cpu}-{place}.lock", wait=False))
                return cpu
    raise AssertionError("there is always a further place")
