# SPDX-License-Identifier: Apache-2.0
"""What becomes of a test that needs Docker where there is none."""

from __future__ import annotations

from pathlib import Path

import dockerd
import pytest


@pytest.fixture(autouse=True)
def no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Docker, whatever this one has."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(dockerd, "missing_packages", lambda listing: ["docker.io"])
    monkeypatch.delenv("LONGFAT_REQUIRE", raising=False)


def test_a_test_is_skipped_with_the_package_to_install() -> None:
    reason = r"missing: docker\.io \(images/packages-docker\.txt\)"
    with pytest.raises(pytest.skip.Exception, match=reason), dockerd.docker():
        pass


@pytest.mark.parametrize("required", ["docker", "qemu,docker", "docker qemu"])
def test_a_test_fails_where_docker_is_required(monkeypatch: pytest.MonkeyPatch, required: str) -> None:
    monkeypatch.setenv("LONGFAT_REQUIRE", required)
    with pytest.raises(pytest.fail.Exception, match=r"docker is required: missing: docker\.io"), dockerd.docker():
        pass


def test_a_requirement_of_something_else_is_none_of_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGFAT_REQUIRE", "containerdocker")
    with pytest.raises(pytest.skip.Exception):
        dockerd.refuse("no reason")


def test_a_normal_user_without_a_daemon_is_told_who_can_start_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dockerd, "missing_packages", lambda listing: [])
    monkeypatch.setattr(dockerd.os, "geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match="only root can start one"), dockerd.docker():
        pass
