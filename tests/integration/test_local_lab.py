# SPDX-License-Identifier: Apache-2.0
"""A lab of this host from nothing to nothing: Terraform, QEMU without KVM, the machines' disk, SSH."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longfat.builds.disk import build_disk
from longfat.cli import app
from longfat.system.errors import RigError

pytestmark = pytest.mark.infra

NEEDED = ("qemu-system-x86_64", "ssh", "ssh-keygen")


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of labs, below one whose name is short enough for sockets."""
    reasons = [f"{program} is not installed" for program in NEEDED if shutil.which(program) is None]
    if not (shutil.which("terraform") or shutil.which("tofu")):
        reasons.append("neither terraform nor tofu is in PATH")
    try:
        build_disk()
    except RigError as error:
        reasons.append(error.message)
    if reasons and "infra" not in os.environ.get("LONGFAT_REQUIRE", "").replace(",", " ").split():
        pytest.skip("; ".join(reasons))
    assert reasons == []
    scratch = Path(tempfile.mkdtemp(dir="/tmp"))
    monkeypatch.setenv("LONGFAT_LABS", str(scratch / "labs"))
    yield scratch / "labs"
    for number in processes(scratch / "labs/local").values():
        os.kill(number, signal.SIGKILL)
    shutil.rmtree(scratch)


def call(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["lab", *arguments], env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output[-4000:]
    return done.output


def processes(folder: Path) -> dict[str, int]:
    """The process of each machine, by what its command line says."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text().split("\0")
        except (OSError, UnicodeDecodeError):
            continue
        if any(word.startswith(f"{folder}/") and word.endswith(".pid") for word in words) and "-name" in words:
            found[words[words.index("-name") + 1]] = int(path.parent.name)
    return found


def ask(folder: Path, command: str) -> dict[str, str]:
    """What a command prints on each machine, reached by what the lab's folder says."""
    answers = {}
    for host in json.loads((folder / "inventory.json").read_text())["hosts"]:
        options = ["-o", f"UserKnownHostsFile={folder}/known_hosts", "-o", "GlobalKnownHostsFile=/dev/null"]
        options += ["-o", "StrictHostKeyChecking=yes", "-i", str(folder / "id_ed25519"), "-p", str(host["ssh"]["port"])]
        done = subprocess.run(
            ["ssh", *options, f"{host['ssh']['user']}@{host['ssh']['address']}", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        answers[host["name"]] = done.stdout.strip()
    return answers


def test_a_lab_comes_up_is_mended_and_leaves_nothing(labs: Path) -> None:
    folder = labs / "local"
    call("up", "local", "--yes")
    assert ask(folder, "hostname") == {name: name for name in ("receiver", "router", "sender")}
    assert len(set(ask(folder, "cat /etc/machine-id").values())) == 3
    # Of three cards one has an address: the others are the runs'.
    assert set(ask(folder, "ls /sys/class/net | wc -l; ip -4 -o address show scope global | wc -l").values()) == {
        "4\n1"
    }

    before = processes(folder)
    os.kill(before["router"], signal.SIGKILL)
    call("up", "local", "--yes")
    after = processes(folder)
    assert after["router"] != before["router"]
    assert (after["sender"], after["receiver"]) == (before["sender"], before["receiver"])
    assert ask(folder, "hostname")["router"] == "router"

    call("down", "local", "--yes")
    assert processes(folder) == {}
    assert list(labs.iterdir()) == []
