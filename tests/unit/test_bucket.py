# SPDX-License-Identifier: Apache-2.0
"""A store has one object a run, written once; what is fetched from it is the record that was put there."""

from __future__ import annotations

import gzip
import tarfile
from contextlib import nullcontext
from pathlib import Path

import pytest
from test_merge import commit
from test_shards import call, made_of, root, run_tiny

from longfat.errors import RecordError, RigError
from longfat.record.bucket import Bucket, object_name, pack, unpack
from longfat.record.outbox import OUTBOX, Outbox
from longfat.record.verify import read_record

__all__ = ["root"]  # a fixture


def packed(folder: Path, *, ok: bool = True) -> Path:
    """The file of a record, next to it."""
    pack(folder, folder.parent / object_name(folder.name, ok=ok))
    return folder.parent / object_name(folder.name, ok=ok)


def test_shards_without_a_folder_give_the_dataset_of_one_machine(root: Path) -> None:
    assert run_tiny(root / "alone").exit_code == 0
    store = f"file://{root}/store"
    for number in (1, 2, 3):
        done = run_tiny(root / f"node{number}", "--shard", f"{number}/3", "--store", store)
        assert "2 runs executed, 0 kept, 0 failed" in done.output
        assert list((root / f"node{number}/raw").iterdir()) == []
    assert "0 runs executed, 2 kept" in run_tiny(root / "again", "--shard", "1/3", "--store", store).output
    assert "6 records fetched, 0 there already" in call("merge", str(root / "all"), store).output
    assert made_of(root / "all") == made_of(root / "alone")
    assert "0 records fetched, 6 there already" in call("merge", str(root / "all"), store).output


def test_a_store_of_another_plan_is_refused(root: Path) -> None:
    store = f"file://{root}/store"
    assert run_tiny(root / "one", "--shard", "1/3", "--store", store).exit_code == 0
    other = run_tiny(root / "two", "--shard", "2/3", "--store", store, "--seed", "2")
    assert other.exit_code == 2
    assert f"{store}: the lock differs from this command's plan in runs, seed" in other.stderr
    assert "a store takes the records of shards" in run_tiny(root / "three", "--store", store).stderr


def test_an_object_is_written_once_and_a_failed_run_does_not_stand_in_the_way_of_an_ok_one(tmp_path: Path) -> None:
    store = Bucket(f"file://{tmp_path}/store")
    assert store.names() == {}
    failed, ok = commit(tmp_path / "failed", 1, status="failed"), commit(tmp_path / "ok", 1)
    assert store.put(packed(failed, ok=False))
    assert ".failed" in store.names()[ok.name]
    assert store.put(packed(ok)) and not store.put(packed(ok))
    key = store.names()[ok.name]
    assert ".failed" not in key
    (tmp_path / "raw").mkdir()
    assert store.get(key, tmp_path / "raw").status == "ok"
    assert packed(tmp_path / "raw" / ok.name).read_bytes() == packed(ok).read_bytes()
    packed(tmp_path / "raw" / ok.name).unlink()
    assert [path.name for path in (tmp_path / "raw").iterdir()] == [ok.name]


@pytest.mark.parametrize("damage", [b"", b"no tar at all", b"x" * 700])
def test_a_damaged_object_is_named_and_leaves_nothing(tmp_path: Path, damage: bytes) -> None:
    store, folder = Bucket(f"file://{tmp_path}/store"), commit(tmp_path / "one", 1)
    store.put(packed(folder))
    key = store.names()[folder.name]
    content = bytearray(Path(key).read_bytes())
    content[600] ^= 1
    Path(key).write_bytes(damage if damage != b"x" * 700 else bytes(content))
    (tmp_path / "raw").mkdir()
    with pytest.raises(RecordError):
        store.get(key, tmp_path / "raw")
    assert list((tmp_path / "raw").iterdir()) == []
    assert read_record(folder).status == "ok"


def compressed(size: int) -> bytes:
    return gzip.compress(bytes(size))


def sparse(size: int) -> bytes:
    """A tar file of two blocks with a file of ``size`` bytes, all of it a hole."""
    entry = tarfile.TarInfo("flows.json")
    entry.type, entry.size = tarfile.GNUTYPE_SPARSE, 0
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"%011o\0" % size  # where GNU tar has the size with holes
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:512]))
    return bytes(header[:512]) + bytes(1024)


@pytest.mark.parametrize("content", [compressed(1 << 20), sparse(1 << 40)], ids=["compressed", "sparse"])
def test_an_object_that_would_grow_when_it_is_unpacked_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(RecordError, match=r"no tar file|no plain file of a record"):
        unpack(content, tmp_path / "one", "s3://bucket/one.tar")
    assert not list((tmp_path / "one").iterdir())


def test_an_address_that_nothing_can_open_is_an_error_that_names_it() -> None:
    with pytest.raises(RigError, match="nothing://x: the store cannot be opened"):
        Bucket("nothing://x")


def test_what_a_killed_command_has_left_is_sent_by_the_next_one_and_not_executed_again(root: Path) -> None:
    store = f"file://{root}/store"
    assert run_tiny(root / "one", "--shard", "1/2", "--store", store).exit_code == 0
    assert list((root / "one" / OUTBOX).iterdir()) == []
    for path in (root / "store").glob("*/*.tar"):
        path.rename(root / "one" / OUTBOX / path.name)
    assert "0 runs executed, 3 kept, 0 failed" in run_tiny(root / "one", "--shard", "1/2", "--store", store).output
    assert len(Bucket(store).names()) == 3 and list((root / "one" / OUTBOX).iterdir()) == []


class Away(Bucket):
    """A store that has not answered for ``times`` times."""

    times = 0

    def put(self, file: Path) -> bool:
        if self.times:
            object.__setattr__(self, "times", self.times - 1)
            raise RigError("no answer", where=self.address)
        return super().put(file)


@pytest.mark.parametrize("times", [2, 10**9])
def test_a_store_that_is_away_is_asked_again_for_a_while_and_the_records_stay_until_it_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr("longfat.record.outbox.PATIENCE_S", 0.5)
    monkeypatch.setattr("longfat.record.outbox.PAUSE_S", 0.01)
    store, folder = Away(f"file://{tmp_path}/store"), commit(tmp_path / "one", 1)
    object.__setattr__(store, "times", times)
    with pytest.raises(RigError, match="no answer") if times > 2 else nullcontext(), Outbox(tmp_path, store) as outbox:
        packed(folder).rename(outbox.folder / object_name(folder.name, ok=True))
        outbox.send(folder.name, ok=True)
    assert len(list((tmp_path / OUTBOX).iterdir())) == (times > 2)
    assert len(store.names()) == (times == 2)
