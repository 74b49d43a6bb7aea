# SPDX-License-Identifier: Apache-2.0
"""Shards whose records go to an S3 server, a process of its own, end with the dataset of one machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3 import BUCKET, s3

from longfat.dataset.build import build_dataset, dataset_digests

ROOT = Path(__file__).parents[2]
STUDY = (ROOT / "tests/unit/test_shards.py").read_text(encoding="utf-8").split('"""')[3]

# Two writers at once, of which one must succeed; then more objects than one page of a listing has.
WRITERS = f"""
import concurrent.futures as futures, pathlib
from longfat.record.bucket import Bucket
bucket = Bucket("s3://{BUCKET}/many")
with futures.ThreadPoolExecutor(8) as pool:
    assert sum(pool.map(lambda number: bucket.share("one", str(number)) == str(number), range(8))) == 1
bucket._files.pipe({{f"{BUCKET}/many/{{n:08x}}/a.r01.{{n:08x}}.tar": b"" for n in range(1_050)}})
print(len(Bucket("s3://{BUCKET}/many").names()))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    pytest.importorskip("moto")
    pytest.importorskip("s3fs")
    with s3() as server:
        yield server.variables


def python(server: dict[str, str], root: Path, *line: str) -> str:
    environment = {**os.environ, **server, "LONGFAT_ROOT": str(root), "PYTHONPATH": f"{ROOT}/tests/fake:{ROOT}/src"}
    done = subprocess.run([sys.executable, *line], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_two_shards_on_s3_give_the_dataset_of_one_machine(server: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "experiments/tiny").mkdir(parents=True)
    (tmp_path / "experiments/tiny/study.yaml").write_text(STUDY, encoding="utf-8")
    run = ["-m", "longfat", "run", "tiny", "--backend", "fake", "--jobs", "2", "--results"]
    python(server, tmp_path, *run, str(tmp_path / "alone"))
    store = f"s3://{BUCKET}/tiny"
    for shard in ("1/2", "2/2"):
        python(server, tmp_path, *run, str(tmp_path / "node"), "--shard", shard, "--store", store)
    said = python(server, tmp_path, "-m", "longfat", "merge", str(tmp_path / "all"), store)
    assert "6 records fetched, 0 there already" in said
    for name in ("alone", "all"):
        assert build_dataset(tmp_path / name).ok == 6
    assert dataset_digests(tmp_path / "all") == dataset_digests(tmp_path / "alone")


def test_of_writers_at_the_same_time_one_succeeds_and_a_listing_has_all_pages(
    server: dict[str, str], tmp_path: Path
) -> None:
    assert python(server, tmp_path, "-c", WRITERS).strip() == "1050"
