# SPDX-License-Identifier: Apache-2.0
"""Programs that Longfat starts: variables of the user, and repositories of others, never decide what they do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from longfat.backends.testbed.provision import terraform
from longfat.backends.testbed.provision.labs import MODULES
from longfat.cli import version
from longfat.system.processes import environment_without, git

ROOT = Path(__file__).parents[2]
WHO = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def repository(folder: Path, *files: str) -> str:
    """A repository with one commit of these files; the name of the commit."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in files or ("file",):
        (folder / name).write_text(f"{folder}\nline\n")
    for line in (["init", "-q"], ["add", "."], [*WHO, "commit", "-qm", "one"]):
        subprocess.run(["git", *line], cwd=folder, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    return head.stdout.strip()


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD").stdout.decode().strip()


def test_the_commit_is_that_of_the_checkout_whatever_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = repository(tmp_path / "own"), repository(tmp_path / "other")
    assert own != other
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert head(tmp_path / "own") == own
    monkeypatch.setattr(version, "HOME", tmp_path / "own")
    assert version.commit() == own[:12]


def test_a_repository_above_an_unpacked_archive_is_not_its_own(tmp_path: Path) -> None:
    repository(tmp_path / "above")
    (tmp_path / "above/unpacked").mkdir()
    assert git(tmp_path / "above/unpacked", "rev-parse", "HEAD").returncode != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_checkout_of_another_user_has_its_commit(tmp_path: Path) -> None:
    own = repository(tmp_path / "own")
    for path in [tmp_path / "own", *(tmp_path / "own").rglob("*")]:
        os.chown(path, 65534, 65534)
    assert head(tmp_path / "own") == own


def test_terraform_has_no_variable_of_the_user_that_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TF_WORKSPACE", "TF_CLI_ARGS_apply", "TF_VAR_image_url", "TF_CLI_CONFIG_FILE", "OS_CLOUD"):
        monkeypatch.setenv(name, "mine")
    used = terraform.Terraform("terraform", MODULES["local"], tmp_path, "again")._environment()
    assert {name for name, value in used.items() if value == "mine"} == {"TF_CLI_CONFIG_FILE", "OS_CLOUD"}
    assert used["TF_DATA_DIR"] == str(tmp_path / ".terraform")
    assert "TF_WORKSPACE" not in environment_without("TF_")


def test_ansible_has_no_variable_of_the_user_that_decides() -> None:
    loop = re.search(r"^for name in .*?^done\n", (ROOT / "infra/ansible/run").read_text(), re.M | re.S)
    assert loop is not None
    names = ("INVENTORY", "LIMIT", "CHECK_MODE", "NOCOLOR", "RETRY_FILES_ENABLED")
    given = {**{f"ANSIBLE_{name}": "1" for name in names}, "PATH": os.environ["PATH"]}
    done = subprocess.run(["bash", "-euc", f"{loop[0]}\nenv"], env=given, capture_output=True, text=True, check=True)
    left = {line.partition("=")[0] for line in done.stdout.splitlines() if line.startswith("ANSIBLE")}
    assert left == {"ANSIBLE_NOCOLOR", "ANSIBLE_RETRY_FILES_ENABLED"}


def test_a_clone_that_converts_ends_of_lines_has_the_same_bytes(tmp_path: Path) -> None:
    shutil.copy(ROOT / ".gitattributes", tmp_path)
    repository(tmp_path, "just", "study.yaml", "two.trace", "patch.patch")
    clone = ["git", "-c", "core.autocrlf=true", "clone", "-q", "-c", "core.autocrlf=true", str(tmp_path), "copy"]
    subprocess.run(clone, cwd=tmp_path, check=True)
    for name in ("just", "study.yaml", "two.trace", "patch.patch"):
        assert (tmp_path / "copy" / name).read_bytes() == (tmp_path / name).read_bytes()
