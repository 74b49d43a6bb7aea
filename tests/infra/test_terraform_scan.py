# SPDX-License-Identifier: Apache-2.0
"""The security scan: nothing is found in infra/terraform, and what should be found is."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from terraform_toolbox import INFRA, lacking

from longfat.system.cache import cache_folder

pytestmark = pytest.mark.terraform

SCAN = INFRA / "scan"
OPEN_DOOR = """
resource "openstack_networking_secgroup_rule_v2" "ssh" {
  direction         = "ingress"
  ethertype         = "IPv4"
  protocol          = "tcp"
  port_range_min    = 22
  port_range_max    = 22
  remote_ip_prefix  = "0.0.0.0/0"
  security_group_id = "2f02d20a-8dca-49b7-b26f-b6ce9fddaf4f"
}
"""
PASSWORD_LEFT_LYING = """
provider "openstack" {
  user_name = "lab"
  password  = "correct horse battery staple"
}
"""


def scan(folder: Path) -> subprocess.CompletedProcess[str]:
    digest = hashlib.sha256((SCAN / "requirements.lock").read_bytes()).hexdigest()
    if not (cache_folder() / "scanner" / digest[:16] / "ready").exists():
        lacking("the scanner is not in the cache folder; infra/scan/run, which `just infra-check` starts, installs it")
    return subprocess.run([SCAN / "run", folder], capture_output=True, text=True, check=False)


def test_nothing_is_found() -> None:
    done = scan(INFRA / "terraform")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Failed checks: 0" in done.stdout
    assert "Passed checks: 0" not in done.stdout


@pytest.mark.parametrize(
    ("content", "check"), [(OPEN_DOOR, "CKV_OPENSTACK_2"), (PASSWORD_LEFT_LYING, "CKV_OPENSTACK_1")]
)
def test_what_is_insecure_is_found(tmp_path: Path, content: str, check: str) -> None:
    (tmp_path / "main.tf").write_text(content)
    done = scan(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"Check: {check}:" in done.stdout


def test_the_scanner_is_locked() -> None:
    assert "\ncheckov==" in (SCAN / "requirements.lock").read_text()
