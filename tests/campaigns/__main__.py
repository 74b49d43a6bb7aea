# SPDX-License-Identifier: Apache-2.0
"""``./just campaign kill|damage|fuzz|extreme``: rounds for so long, a table, and an exit status of 1 if any is bad."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
import tempfile
from pathlib import Path

from campaigns.rounds import BAD, Round, played, table

KINDS = {"kill": "Kills", "damage": "Damages", "fuzz": "Nonsense", "extreme": "Extremes"}
INTERRUPTED = 130  # the exit status of a program that an interrupt ended


def say(line: str) -> None:
    """Print at once: a long campaign is watched."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Play one campaign."""
    parser = argparse.ArgumentParser(prog="./just campaign", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--minutes", type=float, default=2.0, help="how long rounds are begun (default 2)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is drawn (default 1)")
    parser.add_argument("--only", type=int, nargs="+", default=(), metavar="ROUND", help="these rounds alone")
    parser.add_argument("--log", type=Path, metavar="FILE", help="add the rounds to it, and play none that it has")
    given = parser.parse_args()
    rounds: list[Round] = []
    ended = ""
    kind = getattr(importlib.import_module(f"campaigns.{given.kind}"), KINDS[given.kind])
    with (
        tempfile.TemporaryDirectory(prefix="longfat-campaign-") as work,
        kind(Path(work)) as campaign,
        contextlib.suppress(KeyboardInterrupt),
    ):
        ended = ", ended by an interrupt"
        rounds.extend(played(campaign.play, given.seed, given.minutes, say, given.only, given.log))
        ended = ""
    bad = sum(one.outcome in BAD for one in rounds)
    say(f"\ncampaign {given.kind}, seed {given.seed}: {len(rounds)} rounds, {bad} bad{ended}\n\n{table(rounds)}")
    return 1 if bad else INTERRUPTED if ended else 0


if __name__ == "__main__":
    sys.exit(main())
