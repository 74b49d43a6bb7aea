# SPDX-License-Identifier: Apache-2.0
"""How long shards take whose records go to S3, beside shards with folders of their own: a measurement, not a test.

``PYTHONPATH=src:tests python tests/store_benchmark.py RUNS SECONDS [ROUNDS]`` executes so many invented runs of so many
seconds, in two shards with two jobs each, both ways, the one after the other, so many times. It prints the times, the
CPU time of the shards and of the server, and what is recorded. SECONDS is ``real`` for runs in guests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from s3 import BUCKET, s3

from longfat.record.bucket import Bucket
from longfat.record.verify import find_records

ROOT = Path(__file__).parents[1]
STUDY = (ROOT / "tests/unit/test_shards.py").read_text(encoding="utf-8").split('"""')[3]
SLOW = """
import fake_backend as fake
fake.open_backend = lambda name, say, **settings: fake.FakeBackend(wall_seconds={seconds})
"""
SHARDS = (1, 2)


@dataclass
class Cost:
    """What shards have cost, in seconds, and how many records there are."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    records: int = 0


def shards(cost: Cost, root: Path, name: str, environment: dict[str, str], *options: str) -> None:
    """Execute both shards of the study, each in a folder of its own."""
    begun = time.monotonic()
    tasks = []
    for number in SHARDS:
        line = [sys.executable, "-m", "longfat", "run", "tiny", "--jobs", "2", "--shard", f"{number}/{len(SHARDS)}"]
        line += ["--results", str(root / f"{name}{number}"), *options]
        tasks.append(subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL).pid)
    for task in tasks:
        _, status, used = os.wait4(task, 0)
        assert status == 0
        cost.cpu_s += used.ru_utime + used.ru_stime
    cost.wall_s += time.monotonic() - begun


def main(runs: int, seconds: str, rounds: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, s3() as server:
        root = Path(folder)
        (root / "experiments/tiny").mkdir(parents=True)
        study = STUDY.replace("repetitions: 2", f"repetitions: {runs // rounds // 3}")
        (root / "experiments/tiny/study.yaml").write_text(study, encoding="utf-8")
        (root / "site").mkdir()
        backend = [] if seconds == "real" else ["--backend", "fake"]
        if backend:
            (root / "site/sitecustomize.py").write_text(SLOW.format(seconds=float(seconds)), encoding="utf-8")
        os.environ |= server.variables
        environment = {
            **os.environ,
            "LONGFAT_ROOT": str(root),
            "PYTHONPATH": f"{root}/site:{ROOT}/tests/fake:{ROOT}/src",
        }
        local, stored, served_s = Cost(), Cost(), 0.0
        for number in range(rounds):
            shards(local, root, f"local{number}-", environment, *backend)
            local.records += sum(len(find_records(root / f"local{number}-{part}/raw")) for part in SHARDS)
            before, store = server.cpu_s(), f"s3://{BUCKET}/tiny{number}"
            shards(stored, root, f"stored{number}-", environment, *backend, "--store", store)
            served_s += server.cpu_s() - before
            stored.records += len(Bucket(store).names())
        for name, cost in (("folders", local), ("s3", stored)):
            sys.stdout.write(f"{name}: {cost.records} records, {cost.wall_s:.1f} s, {cost.cpu_s:.1f} s of CPU\n")
        sys.stdout.write(f"the server: {served_s:.1f} s of CPU\n")
        ratios = (
            f"{stored.wall_s / local.wall_s:.3f} times as long, with {stored.cpu_s / local.cpu_s:.3f} times the CPU"
        )
        sys.stdout.write(f"s3 takes {ratios}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1)
