# SPDX-License-Identifier: Apache-2.0
"""``./just stress KIND``: play rounds for some minutes; exit status 1 if any is bad.

Each round draws from its own seed and can be played again alone.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

KINDS = ("kill", "damage", "fuzz", "extreme", "studies", "hosts", "places", "turn")
BAD = "bad"


def main() -> int:
    """Play rounds of one kind; return the exit status."""
    parser = argparse.ArgumentParser(prog="./just stress", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--minutes", type=float, default=2.0, help="how long rounds are begun (default 2)")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything drawn (default 1)")
    parser.add_argument("--only", type=int, nargs="+", default=(), metavar="ROUND", help="only these rounds")
    given = parser.parse_args()
    prepare = importlib.import_module(f"stress.{given.kind}").prepare
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="longfat-stress-") as work, pytest.MonkeyPatch.context() as patch:
        play = prepare(Path(work), patch)
        end = time.monotonic() + 60 * given.minutes
        for number in given.only or itertools.count(1):
            try:
                outcome = play(random.Random(f"{given.seed}:{number}"))
                found.update([outcome] if isinstance(outcome, str) else outcome)
            except Exception as error:
                found[BAD] += 1
                print(f"round {number} of seed {given.seed}: {type(error).__name__}: {error}", flush=True)  # noqa: T201
            if not given.only and time.monotonic() > end:
                break
    counts = ", ".join(f"{outcome}: {count}" for outcome, count in sorted(found.items()))
    print(f"stress {given.kind}, seed {given.seed}: {number} rounds; {counts}")  # noqa: T201
    return 1 if found[BAD] else 0


if __name__ == "__main__":
    sys.exit(main())
