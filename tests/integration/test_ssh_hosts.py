# SPDX-License-Identifier: Apache-2.0
"""On hosts with nothing but an SSH server a study ends as on one machine, although one host is lost and one absent."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from needs import free_ports, require_packages
from remote_study import alone, dataset_of, on_nodes, processes, workers
from remote_study import repository as repository

from longfat.execute.record.verify import find_records

# Runs of the host alpha wait for the test; those of beta take ten minutes, so that it has one when it is killed.
HOSTS = {"alpha": {"NODE_HOLD": "{folder}/hold"}, "beta": {"NODE_SECONDS": "600.25"}}
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
def hosts(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Path]:
    """A folder with two hosts: their homes, each with a checkout, and ``config`` by which ssh finds them."""
    require_packages("slurm", "packages-cluster.txt")
    folder = tmp_path_factory.mktemp("hosts")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd(8) as root wants it
    with ExitStack() as resources, (folder / "config").open("w") as config:
        for host in HOSTS:
            (port,) = free_ports(1)
            (folder / f"{host}.conf").write_text(SERVER.format(port=port, folder=folder, host=host))
            config.write(CLIENT.format(port=port, folder=folder, host=host))
            program = folder / host / "checkout/.venv/bin/python"
            program.parent.mkdir(parents=True)
            for_host = {name: value.format(folder=folder) for name, value in HOSTS[host].items()}
            variables = " ".join(f"{name}={value}" for name, value in (on_nodes(repository) | for_host).items())
            program.write_text(f'#!/bin/sh\n{variables} exec {sys.executable} "$@"\n')
            program.chmod(0o755)
            sshd = shutil.which("sshd", path="/usr/sbin:/usr/bin") or "sshd"
            server = subprocess.Popen([sshd, "-D", "-f", str(folder / f"{host}.conf")], stderr=subprocess.DEVNULL)
            resources.callback(server.wait)
            resources.callback(server.terminate)
            deadline = time.monotonic() + 30
            while not listens(port):
                assert time.monotonic() < deadline and server.poll() is None, "sshd does not start"
                time.sleep(0.1)
        config.flush()
        yield folder


def start(root: Path, hosts: Path, on: str, results: str = "results") -> subprocess.Popen[str]:
    """Start the command ``run`` on hosts."""
    line = ["run", "tiny", "--backend", "fake", "--results", str(root / results), "--on", on, "--jobs", "2"]
    ssh = {"LONGFAT_SSH": f"ssh -F {hosts}/config -o BatchMode=yes -o ConnectTimeout=5"}
    command = [sys.executable, "-m", "longfat", *line]
    environment = os.environ | on_nodes(root) | ssh
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_host_that_is_lost_is_named_and_the_others_do_its_runs(hosts: Path, repository: Path) -> None:
    on = ",".join([*(f"{name}:{hosts}/{name}/checkout" for name in HOSTS), "nowhere"])
    (hosts / "hold").touch()
    command = start(repository, hosts, f"ssh:{on}")
    while not processes("sleep", HOSTS["beta"]["NODE_SECONDS"]):
        assert command.poll() is None, command.communicate()
        time.sleep(0.05)
    for process in workers(" --name beta"):
        os.kill(process, signal.SIGKILL)
    (hosts / "hold").unlink()
    said, _ = command.communicate(timeout=120)
    assert command.returncode == 0, said
    assert "the worker on nowhere ended with status 255" in said and "the worker on beta ended" in said
    assert "alpha" in {record.node for record in find_records(repository / "results/raw").values()}
    assert dataset_of(repository / "results") == alone(repository)
    assert not [worker for host in HOSTS for worker in workers(f" --name {host}")]


def test_a_command_without_any_host_ends_with_the_message_of_ssh(hosts: Path, repository: Path) -> None:
    said, _ = (command := start(repository, hosts, "ssh:nowhere", "none")).communicate(timeout=120)
    assert command.returncode == 3 and "no host is left" in said, said
