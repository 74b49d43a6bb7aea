# SPDX-License-Identifier: Apache-2.0
"""The preparation of a lab: what the playbook is started with, and what is said of hosts that failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stubbed_labs import Labs, call, names, stubbed_labs

from longfat.builds.kernel import KernelBuild
from longfat.testbed.provision import work


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Labs:
    return stubbed_labs(tmp_path, monkeypatch)


@pytest.fixture
def prepared(labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes a lab that is up, and a script of the given text in the place of infra/ansible/provision."""

    def make(script: str) -> Path:
        folder = labs.lab("existing")
        call("up", "existing", "--yes")
        labs.program("provision", f'printf "%s\\n" "$@" >"{tmp_path}/arguments"\n{script}')
        monkeypatch.setattr(work, "ANSIBLE", labs.programs)
        built = KernelBuild(Path("/cache/linux-image.deb"), "", "", True)
        monkeypatch.setattr(work, "build_kernel", lambda target, say: built)
        return folder

    return make


def test_a_lab_is_prepared_with_its_key_its_settings_and_the_kernel(
    prepared: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = prepared("")
    (folder / "id_ed25519").touch()
    (folder / "settings.yml").write_text("data_plane_mtu: 9000\n")
    call("provision", "existing", "--", "--check", "--diff")
    assert (tmp_path / "arguments").read_text().splitlines() == [
        *(f"{folder}/inventory.json", str(folder)),
        *("--private-key", f"{folder}/id_ed25519"),
        *("--extra-vars", f"@{folder}/settings.yml"),
        *("--extra-vars", '{"kernel_booted_package": "/cache/linux-image.deb"}'),
        *("--check", "--diff"),
    ]
    call("provision", "--lab", "existing", "--", "--check")
    assert (tmp_path / "arguments").read_text().splitlines()[-1] == "--check"
    (folder / "settings.yml").write_text("kernel_booted_package: ''\n")
    call("provision", "existing")
    assert "linux-image" not in (tmp_path / "arguments").read_text()


def test_hosts_that_failed_are_named_with_the_next_command(prepared: Callable[[str], Path]) -> None:
    folder = prepared('printf "router\\nsender\\n" >"$ANSIBLE_RETRY_FILES_SAVE_PATH/site.retry"; exit 2')
    said = call("provision", "existing", status=3)
    assert "not prepared: router,sender" in said
    assert "./just lab provision existing -- --limit router,sender" in said
    assert not [name for name in names(folder) if name.startswith(".provision")]


def test_a_damaged_inventory_is_an_error_with_its_remedy(prepared: Callable[[str], Path]) -> None:
    prepared("exit 1")
    assert "if the inventory is damaged, ./just lab up existing writes it again" in call(
        "provision", "existing", status=3
    )


def test_a_lab_that_is_not_up_cannot_be_prepared(labs: Labs) -> None:
    assert "the lab local is not up" in call("provision", "local", status=3)


@pytest.mark.parametrize("text", ["{", "- a\n- list\n"])
def test_settings_that_cannot_be_read_are_refused(prepared: Callable[[str], Path], text: str) -> None:
    (prepared("") / "settings.yml").write_text(text)
    assert "the lab's settings" in call("provision", "existing", status=2)


def test_a_folder_of_labs_with_a_blank_is_refused_before_anything_is_made(
    labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_LABS", str(tmp_path / "my labs"))
    labs.lab("existing")
    assert "no path with a blank" in call("up", "existing", "--yes", status=2)
    assert not list((tmp_path / "my labs").rglob("*.tfstate"))
