# SPDX-License-Identifier: Apache-2.0
"""What a killed process left goes at the next start, and nothing that another one still uses."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

from fabricated_results import write_results, write_study

from longfat.dataset.build import build_dataset
from longfat.system.files import write_whole
from longfat.system.processes import is_running
from longfat.system.scratch import scratch_in

SOURCE = Path(__file__).parents[2] / "src"
HOLD = """
import sys, time
from pathlib import Path
from longfat.system.scratch import scratch_in
with scratch_in(Path(sys.argv[1]), "guest-") as folder:
    (folder / "capture").write_bytes(b"packets")
    print(folder, flush=True)
    time.sleep(60)
"""
GONE = 2**22 + 1  # above the kernel's largest number of a process


def holding(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that uses such a folder, and the folder."""
    command = [sys.executable, "-c", HOLD, str(parent)]
    process = subprocess.Popen(command, env={"PYTHONPATH": str(SOURCE)}, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_the_folder_of_a_killed_process_goes_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    (killed, left), (living, used) = holding(tmp_path), holding(tmp_path)
    killed.kill()
    killed.communicate()
    assert (left / "capture").exists()
    with scratch_in(tmp_path, "guest-") as own:
        assert sorted(tmp_path.iterdir()) == sorted([used, own])
    assert list(tmp_path.iterdir()) == [used]
    living.kill()
    living.communicate()


def test_what_a_killed_process_left_running_in_its_folder_ends_and_what_a_living_session_has_there_does_not(
    tmp_path: Path,
) -> None:
    killed, left = holding(tmp_path)
    killed.kill()
    killed.communicate()
    # As a part of a guest whose kernel is gone: its session's first process has ended.
    begun = subprocess.run(
        ["/bin/sh", "-c", "sleep 60 >/dev/null & echo $!"],
        cwd=left,
        start_new_session=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    stopped = os.pidfd_open(int(begun.stdout))
    with subprocess.Popen(["sleep", "60"], cwd=left, start_new_session=True) as living:
        with scratch_in(tmp_path, "guest-"):
            assert select.select([stopped], [], [], 10)[0]
            assert is_running(living.pid)
        living.kill()
    os.close(stopped)
    assert not left.exists()


def test_a_folder_that_is_just_being_made_is_left_alone_for_a_minute(tmp_path: Path) -> None:
    (tmp_path / ".guest-made").mkdir()
    with scratch_in(tmp_path, "guest-"):
        assert (tmp_path / ".guest-made").exists()


def test_files_and_folders_of_other_names_stay(tmp_path: Path) -> None:
    (tmp_path / "guest-file").touch()
    (tmp_path / "other").mkdir()
    with scratch_in(tmp_path, "guest-"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["guest-file", "other"]


def test_the_draft_of_a_killed_process_goes_when_the_file_is_written_again(tmp_path: Path) -> None:
    for name in (f".verdicts.json-{GONE}", f".verdicts.json-{os.getppid()}", f".report.html-{GONE}"):
        (tmp_path / name).touch()
    write_whole(tmp_path / "verdicts.json", "[]")
    left = [f".report.html-{GONE}", f".verdicts.json-{os.getppid()}", "verdicts.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(left)


def test_the_draft_of_a_dataset_goes_when_it_is_built_again(tmp_path: Path) -> None:
    study, results = write_study(tmp_path), tmp_path / "results"
    write_results(study, results)
    (results / ".partial-dataset-abc").mkdir()
    build_dataset(results)
    assert not list(results.glob(".partial-*"))
