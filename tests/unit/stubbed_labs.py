# SPDX-License-Identifier: Apache-2.0
"""Labs in a folder of their own, with stubs in the place of the programs that they need, and how they are called."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longfat.cli import app
from longfat.testbed.provision import local

STUB = Path(__file__).with_name("stub_terraform.py")
TAGS = {"study": "any", "owner": "me"}
EXISTING = {"tags": TAGS, "hosts": {}, "links": {}}


@dataclass
class Labs:
    """A folder of labs, and one for PATH."""

    folder: Path
    programs: Path

    @property
    def called(self) -> list[str]:
        calls = self.programs / "calls"
        return calls.read_text().split() if calls.exists() else []

    def program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.programs / name).chmod(0o755)

    def lab(self, name: str, variables: object = EXISTING) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / "lab.tfvars.json").write_text(json.dumps(variables))
        return folder


def stubbed_labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Labs:
    """Labs below ``tmp_path``, with stubs of Terraform, QEMU and ssh-keygen, and no disk."""
    made = Labs(tmp_path / "labs", tmp_path / "programs")
    made.programs.mkdir()
    made.program("terraform", f'exec "{sys.executable}" -I -S "{STUB}" "{made.programs}" "$@"')
    made.program("qemu-system-x86_64", "exit 1")
    made.program(
        "ssh-keygen", 'while [ "$1" != -f ]; do shift; done\necho private >"$2"\necho ssh-ed25519 AAAA >"$2.pub"'
    )
    monkeypatch.setenv("LONGFAT_LABS", str(made.folder))
    monkeypatch.setenv("PATH", f"{made.programs}:/usr/bin:/bin")
    monkeypatch.setattr(local, "build_disk", lambda say: Path("/nowhere/disk.raw"))
    monkeypatch.setattr(local, "FOLDER_BYTES", 1000)
    return made


def call(*arguments: str, status: int = 0) -> str:
    """What `longfat lab` says, once it has ended with ``status``."""
    done = CliRunner().invoke(app, ["lab", *arguments], env={"COLUMNS": "300"})
    assert done.exit_code == status, done.output
    return done.output


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
