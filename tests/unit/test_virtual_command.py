# SPDX-License-Identifier: Apache-2.0
"""The virtual backend without a guest: what it gives and takes, its watchdog, and the identity of its code."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import delay_spec
from needs import comes_true

from longfat.backends import guest_process, virtual
from longfat.backends.guest_process import GuestKernel, scratch_folder, watch
from longfat.backends.landlock import landlock_version
from longfat.backends.virtual import VirtualBackend, code_digest, guest_sources, text_digest
from longfat.builds.kernel_recipe import Recipe
from longfat.spec.runspec import Program, Queue
from longfat.study.catalog.ccas import CCAS
from longfat.study.catalog.kernels import KERNELS
from longfat.study.queues import KINDS as QUEUE_KINDS
from longfat.system import identity
from longfat.system.errors import RigError
from longfat.system.processes import is_running

WORDS = ("seccomp=auto",)
KERNEL = GuestKernel(Path("/cache/linux"), "k", WORDS, frozenset({"reno"}))


def stub_backend(tmp_path: Path, script: str) -> VirtualBackend:
    """A backend whose kernel is a shell script, started in the folder of its run."""
    kernel = tmp_path / "linux"
    kernel.write_text(f"#!/bin/sh\n{script}\n")
    kernel.chmod(0o755)
    (tmp_path / "root").mkdir()
    kernels = {"linux-6.12": dataclasses.replace(KERNEL, path=kernel, command_line=())}
    return VirtualBackend(kernels, tmp_path / "image.tar", "i", "l", tmp_path, tmp_path / "root")


def test_seccomp_filters_are_for_the_images_own_programs_alone(tmp_path: Path) -> None:
    backend = stub_backend(tmp_path, 'cp spec.json raw/outcome.json; echo "$1" >raw/word.txt')
    (kernel,) = backend.kernels.values()
    backend = dataclasses.replace(backend, kernels={"linux-7.3": dataclasses.replace(kernel, command_line=WORDS)})
    plain = delay_spec()
    own = dataclasses.replace(
        plain, programs=(Program("own", "client1", "server", ("./send",), ("./receive",), 1_000_000),)
    )
    said = []
    for spec in (plain, own):
        backend.run(spec, tmp_path)
        said.append((tmp_path / "word.txt").read_text().strip())
    assert said == ["seccomp=auto", "seccomp=off"]


def test_the_raw_files_of_a_guest_and_its_console_are_moved_into_the_run_folder(tmp_path: Path) -> None:
    script = "mkdir raw/iperf; cp spec.json raw/outcome.json; echo 5 >raw/iperf/f.txt; printf 'in %s\\r\\n' \"$PWD\""
    backend = stub_backend(tmp_path, script)
    backend.run(delay_spec(), tmp_path)
    assert (tmp_path / "outcome.json").read_text() == delay_spec().to_json()
    assert (tmp_path / "iperf/f.txt").read_text() == "5\n"
    assert (tmp_path / "console.log").read_text() == "in TASK\n"
    assert [path.name for path in (tmp_path / "scratch").iterdir() if path.is_dir()] == []


def test_a_guest_sees_neither_the_environment_nor_the_home_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_SECRET", "token")
    backend = stub_backend(tmp_path, "touch raw/outcome.json; env >raw/env.txt")
    backend.run(delay_spec(), tmp_path)
    names = {line.partition("=")[0] for line in (tmp_path / "env.txt").read_text().splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"HOME", "PATH"}
    assert f"HOME={os.environ['HOME']}\n" not in (tmp_path / "env.txt").read_text()


@pytest.mark.parametrize("end", ["kill -9 $$", "exit 0"])
def test_a_guest_without_an_outcome_is_an_error_and_nothing_that_it_has_begun_outlives_it(
    tmp_path: Path, end: str
) -> None:
    backend = stub_backend(tmp_path, f"sleep 60 & kill -STOP $!; echo child $!; {end}")
    with pytest.raises(RigError, match=r"the guest ended with.*\nchild") as told:
        backend.run(delay_spec(), tmp_path)
    assert comes_true(lambda: not is_running(int(str(told.value).split()[-1])), 1)


@pytest.mark.parametrize("end", ["exit 3", "while :; do :; done"])
def test_a_guest_that_is_out_of_memory_is_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(guest_process, "STILL_CPU_S", 0.2)
    backend = stub_backend(tmp_path, f"echo 'Out of memory: Killed process 24 (iperf) total-vm:2931764kB'; {end}")
    with pytest.raises(RigError, match="the guest is out of memory, it has 1024 MiB: ") as caught:
        backend.run(delay_spec(), tmp_path)
    assert "`memory`" in str(caught.value.hint)


def test_a_guest_that_leaves_a_link_gives_nothing_of_the_host_into_the_results(tmp_path: Path) -> None:
    backend = stub_backend(tmp_path, "touch raw/outcome.json; ln -s /etc/passwd raw/stolen.txt")
    with pytest.raises(RigError, match=r"raw/stolen.txt: a run left something that is neither a file nor a folder"):
        backend.run(delay_spec(), tmp_path)
    assert not (tmp_path / "stolen.txt").exists()


@pytest.mark.skipif(landlock_version() < 1, reason="the kernel has no Landlock")
def test_a_guest_writes_to_the_folder_of_its_run_and_not_to_its_root(tmp_path: Path) -> None:
    backend = stub_backend(tmp_path, "echo >root/x; echo >../y; rm root/bin; echo ended >raw/outcome.json")
    (tmp_path / "root" / "bin").touch()
    backend.run(delay_spec(), tmp_path)
    assert (tmp_path / "outcome.json").read_text() == "ended\n"
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["bin"]
    assert not (tmp_path / "scratch/y").exists()


def test_a_guest_whose_clock_goes_on_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_process, "STILL_WALL_S", 1.0)
    ticks = "for tick in $(seq 21); do echo $tick >>clock; sleep 0.1; done"
    with subprocess.Popen(["sh", "-c", ticks], cwd=tmp_path) as guest:
        watch(guest, tmp_path, tmp_path / "console.log")
    assert guest.returncode == 0


def test_a_temporary_folder_that_somebody_else_has_put_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"longfat-{os.geteuid()}").symlink_to(tmp_path)
    with pytest.raises(RigError, match="you do not own this folder"):
        scratch_folder(tmp_path / "nowhere")


def test_the_code_of_the_guest_is_its_package_with_what_it_imports() -> None:
    names = {str(path.relative_to(virtual.PACKAGE)) for path in guest_sources()}
    assert {"__init__.py", "spec/runspec.py", "guest/__init__.py", "guest/init.py", "guest/run.py"} <= names
    assert not any(name.startswith(("study", "plan", "spec/gates")) for name in names)


def test_the_code_s_identity_follows_what_any_module_does_and_its_root_every_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, text_before = code_digest(), text_digest()
    for path in guest_sources():
        copy = tmp_path / path.relative_to(virtual.PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    for module in (virtual, identity):
        monkeypatch.setattr(module, "PACKAGE", tmp_path)
    assert (code_digest(), text_digest()) == (before, text_before)
    with (tmp_path / "guest/qdisc.py").open("a") as file:
        file.write("# another line\n")
    assert code_digest() == before
    assert text_digest() != text_before
    with (tmp_path / "guest/qdisc.py").open("a") as file:
        file.write("ANOTHER = 1\n")
    assert code_digest() != before


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_configured_with_every_algorithm_and_queue_of_the_catalogue(name: str) -> None:
    assert set(CCAS) <= Recipe(name).ccas()
    missing = {"step"} | ({"dualpi2"} if name.startswith("linux-6.12") else set())
    assert set(QUEUE_KINDS) - Recipe(name).queues() == missing


def test_a_run_that_needs_more_than_the_kernel_has_is_refused(tmp_path: Path) -> None:
    backend = stub_backend(tmp_path, "exit 1")
    spec = dataclasses.replace(delay_spec(), pins={})
    (first, *others) = spec.links
    end = dataclasses.replace(first.a, egress=dataclasses.replace(first.a.egress, queue=Queue("cake", None)))
    for lacking, name in (
        (dataclasses.replace(spec, links=(dataclasses.replace(first, a=end), *others)), "cake"),
        (dataclasses.replace(spec, flows=(dataclasses.replace(spec.flows[0], cca="renoo"),)), "renoo"),
        (dataclasses.replace(spec, pins={"kernel": "linux-7.3"}), "linux-7.3"),
    ):
        (reason,) = backend.refuses(lacking)
        assert name in reason
