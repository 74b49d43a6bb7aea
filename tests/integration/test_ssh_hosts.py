# SPDX-License-Identifier: Apache-2.0
"""On hosts with nothing but an SSH server a study ends as on one machine, also when one of them does not answer."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from slurm import PACKAGES, refuse

from longfat.builds.packages import missing_packages
from longfat.dataset.build import build_dataset, dataset_digests
from longfat.record.verify import find_records

ROOT = Path(__file__).parents[2]
STUDY = (ROOT / "tests/unit/test_shards.py").read_text(encoding="utf-8").split('"""')[3]
HOSTS = ("alpha", "beta")
SERVER = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PidFile none
SetEnv HOME={folder}/{host}
"""
CLIENT = """
Host {host}
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/key
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with two hosts: their homes, each with a checkout, and ``config`` by which ssh finds them."""
    if missing := missing_packages(PACKAGES.read_text(encoding="utf-8")):
        refuse(f"missing: {', '.join(missing)} (images/{PACKAGES.name})")
    folder = tmp_path_factory.mktemp("hosts")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd(8) as root wants it
    with ExitStack() as own, (folder / "config").open("w") as config:
        for host in HOSTS:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            (folder / f"{host}.conf").write_text(SERVER.format(port=port, folder=folder, host=host))
            config.write(CLIENT.format(port=port, folder=folder, host=host))
            program = folder / host / "checkout/.venv/bin/python"
            program.parent.mkdir(parents=True)
            program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/tests/fake:{ROOT}/src exec {sys.executable} "$@"\n')
            program.chmod(0o755)
            sshd = shutil.which("sshd", path="/usr/sbin:/usr/bin") or "sshd"
            server = subprocess.Popen([sshd, "-D", "-f", str(folder / f"{host}.conf")], stderr=subprocess.DEVNULL)
            own.callback(server.wait)
            own.callback(server.terminate)
            deadline = time.monotonic() + 30
            while not listens(port):
                assert time.monotonic() < deadline and server.poll() is None, "sshd does not start"
                time.sleep(0.1)
        config.flush()
        yield folder


def run(root: Path, hosts: Path, name: str, *options: str) -> str:
    """The command ``run``: what it says."""
    line = ["run", "tiny", "--backend", "fake", "--jobs", "1", "--results", str(root / name), *options]
    ssh = f"ssh -F {hosts}/config -o BatchMode=yes -o ConnectTimeout=5"
    environment = {
        "LONGFAT_ROOT": str(root),
        "PYTHONPATH": f"{ROOT}/tests/fake:{ROOT}/src",
        "LONGFAT_SSH": ssh,
        "COLUMNS": "200",
    }
    done = subprocess.run(
        [sys.executable, "-m", "longfat", *line], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def made_of(results: Path) -> dict[str, str]:
    assert build_dataset(results).ok == 6
    return dataset_digests(results)


def test_hosts_that_share_nothing_give_the_dataset_of_one_machine(hosts: Path, tmp_path: Path) -> None:
    (tmp_path / "experiments/tiny").mkdir(parents=True)
    (tmp_path / "experiments/tiny/study.yaml").write_text(STUDY, encoding="utf-8")
    run(tmp_path, hosts, "alone")
    on = ",".join(f"{host}:{hosts}/{host}/checkout" for host in HOSTS)
    said = run(tmp_path, hosts, "both", "--on", f"ssh:{on}")
    assert "5 of 6 runs were executed twice, on different nodes: identical to the byte" in said
    assert "[6/6]" in said
    assert {record.node for record in find_records(tmp_path / "both/raw").values()} == {*HOSTS}
    said = run(tmp_path, hosts, "one", "--on", f"ssh:{on.partition(',')[0]},nowhere")
    assert "nowhere gets no more runs, while others execute theirs: task 2 on nowhere ended with status 255" in said
    assert made_of(tmp_path / "both") == made_of(tmp_path / "one") == made_of(tmp_path / "alone")
