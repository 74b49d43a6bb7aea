# SPDX-License-Identifier: Apache-2.0
"""How long shards take whose records go to S3, beside shards with folders of their own: a measurement, not a test.

``PYTHONPATH=src:tests python tests/store_benchmark.py RUNS SECONDS`` executes so many invented runs of so many seconds,
in two shards with two jobs each, both ways, and prints the times and what is recorded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from s3 import BUCKET, s3

from longfat.record.bucket import Bucket
from longfat.record.verify import find_records

ROOT = Path(__file__).parents[1]
STUDY = (ROOT / "tests/unit/test_shards.py").read_text(encoding="utf-8").split('"""')[3]
SLOW = """
from longfat.backends import fake
fake.open_backend = lambda name, say, **settings: fake.FakeBackend(wall_seconds={seconds})
"""


def shards(root: Path, name: str, environment: dict[str, str], *options: str) -> float:
    """The seconds that both shards take."""
    line = [sys.executable, "-m", "longfat", "run", "tiny", "--backend", "fake", "--jobs", "2", *options]
    begun = time.monotonic()
    tasks = [
        subprocess.Popen(
            [*line, "--shard", f"{number}/2", "--results", str(root / f"{name}{number}")],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        for number in (1, 2)
    ]
    assert [task.wait() for task in tasks] == [0, 0]
    return time.monotonic() - begun


def main(runs: int, seconds: float) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, s3() as variables:
        root = Path(folder)
        (root / "experiments/tiny").mkdir(parents=True)
        study = STUDY.replace("repetitions: 2", f"repetitions: {runs // 3}")
        (root / "experiments/tiny/study.yaml").write_text(study, encoding="utf-8")
        (root / "site").mkdir()
        (root / "site/sitecustomize.py").write_text(SLOW.format(seconds=seconds), encoding="utf-8")
        path = f"{root}/site:{ROOT}/src"
        os.environ |= variables
        environment = {**os.environ, "LONGFAT_ROOT": str(root), "PYTHONPATH": path}
        local = shards(root, "local", environment)
        there = sum(len(find_records(root / f"local{number}/raw")) for number in (1, 2))
        stored = shards(root, "stored", environment, "--store", f"s3://{BUCKET}/tiny")
        names = len(Bucket(f"s3://{BUCKET}/tiny").names())
        sys.stdout.write(f"folders: {there} records, {local:.1f} s\ns3: {names} records, {stored:.1f} s\n")
        sys.stdout.write(f"s3 takes {stored / local:.3f} times as long\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
