# SPDX-License-Identifier: Apache-2.0
"""Every Terraform module: format, validity, its own tests with mocked providers, and the output contract."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from terraform_toolbox import (
    ENVIRONMENTS,
    INFRA,
    MODULES,
    SCHEMA_PROVIDER,
    Terraform,
    inventory_schema,
    refusals_of_smoke,
)
from terraform_toolbox import terraform as terraform

pytestmark = pytest.mark.terraform

# local is applied for real in test_terraform_local.py.
MOCKED = [name for name in ENVIRONMENTS if not name.endswith("/local")]


@pytest.fixture(scope="module")
def said(terraform: Terraform) -> dict[str, list[dict[str, Any]]]:
    """What `terraform test` says of each module, once."""
    tested = [module for module in MODULES if module not in terraform.untested]
    return {module: terraform.messages(module, "test", "-json", "-verbose") for module in tested}


def messages_of(said: dict[str, list[dict[str, Any]]], module: str) -> list[dict[str, Any]]:
    if module not in said:
        pytest.skip("OpenTofu 1.12 overrides whole resources, and this module's tests override single instances")
    return said[module]


def inventories(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    states = [message["test_state"] for message in messages if message.get("type") == "test_state"]
    outputs = [state.get("outputs") or state.get("values", {}).get("outputs", {}) for state in states]  # or: OpenTofu
    return [output["inventory"]["value"] for output in outputs if "inventory" in output]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_valid(terraform: Terraform, module: str) -> None:
    answer = json.loads(terraform.run(module, "validate", "-json", check=False).stdout)
    assert answer["diagnostics"] == []
    assert answer["valid"]


@pytest.mark.parametrize("module", MOCKED)
def test_a_provider_has_one_version_which_is_that_of_its_schema(module: str) -> None:
    [(source, version)] = re.findall(
        r'source  = "(.*)"\n *version = "(.*)"', (INFRA / module / "versions.tf").read_text()
    )
    known = [json.loads(path.read_text()) for path in SCHEMA_PROVIDER.glob("schemas/*.json")]
    assert version in [one["version"] for one in known if one["source"].partition("/")[2] == source]


@pytest.mark.parametrize("module", MODULES)
def test_the_tests_of_a_module_pass(said: dict[str, list[dict[str, Any]]], module: str) -> None:
    messages = messages_of(said, module)
    errors = [message["diagnostic"] for message in messages if message.get("type") == "diagnostic"]
    assert [error for error in errors if error["severity"] == "error"] == []
    [summary] = [message["test_summary"] for message in messages if message.get("type") == "test_summary"]
    assert (summary["status"], summary["failed"], summary["errored"], summary["skipped"]) == ("pass", 0, 0, 0)
    assert summary["passed"] >= 4


@pytest.mark.parametrize("module", ["terraform/modules/inventory", *MOCKED])
def test_the_inventory_keeps_the_contract(said: dict[str, list[dict[str, Any]]], module: str) -> None:
    made = inventories(messages_of(said, module))
    assert made != []
    for inventory in made:
        Draft202012Validator(inventory_schema()).validate(inventory)
    assert {inventory["environment"] for inventory in made} == {
        module.rpartition("/")[2].replace("inventory", "existing")
    }


@pytest.mark.parametrize("module", MOCKED)
def test_the_default_machines_have_a_place_for_every_run_of_the_smoke_study(
    said: dict[str, list[dict[str, Any]]], module: str, tmp_path: Path
) -> None:
    names = {"worker1"} if module.endswith("/aws") else {"receiver", "router", "sender"}
    made = [one for one in inventories(messages_of(said, module)) if {host["name"] for host in one["hosts"]} == names]
    assert made != []
    for inventory in made:
        refused = refusals_of_smoke(inventory, tmp_path)
        if module.endswith("/aws"):  # workers execute it in virtual time
            assert refused == {"the run needs 1 sender host(s), the lab has none"}
        else:
            assert refused == set()


@pytest.mark.parametrize(
    ("module", "right", "wrong", "complaint"),
    [
        ("aws", "http_tokens =", "http_token =", "Unsupported argument"),
        ("latitude", "operating_system =", "operating_sistem =", "Unsupported argument"),
        ("libvirt", "mtu        = { size =", "mtu        = { sise =", "size"),
        ("openstack", "remote_ip_prefix  =", "remote_ip         =", "Unsupported argument"),
    ],
)
def test_what_a_provider_does_not_know_is_found(
    terraform: Terraform, module: str, right: str, wrong: str, complaint: str
) -> None:
    main = terraform.infra / "terraform/environments" / module / "main.tf"
    text = main.read_text()
    assert right in text
    try:
        main.write_text(text.replace(right, wrong, 1))
        answer = json.loads(terraform.run(str(main.parent), "validate", "-json", check=False).stdout)
    finally:
        main.write_text(text)
    assert not answer["valid"]
    assert any(complaint in f"{entry['summary']} {entry.get('detail')}" for entry in answer["diagnostics"])
