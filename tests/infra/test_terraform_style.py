# SPDX-License-Identifier: Apache-2.0
"""House rules for Terraform modules; needs no Terraform."""

from __future__ import annotations

import re

import pytest
from terraform_toolbox import ENVIRONMENTS, INFRA, MODULES

FIVE = {"main.tf", "variables.tf", "outputs.tf", "versions.tf", "README.md"}


def blocks(text: str, kind: str) -> dict[str, str]:
    """The top-level blocks of one kind, by their last label; terraform fmt puts the closing brace first in its line."""
    return dict(re.findall(rf'^{kind} (?:"[^"]+" )*"([^"]+)" {{\n(.*?)^}}', text, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_the_five_files(module: str) -> None:
    assert {path.name for path in (INFRA / module).iterdir()} >= FIVE


@pytest.mark.parametrize("module", MODULES)
def test_every_variable_has_type_description_and_validation(module: str) -> None:
    variables = blocks((INFRA / module / "variables.tf").read_text(), "variable")
    assert variables
    for name, body in variables.items():
        for wanted in ("description", "type", "validation"):
            assert re.search(rf"^  {wanted}\b", body, flags=re.MULTILINE), f"{name} has no {wanted}"


@pytest.mark.parametrize("module", MODULES)
def test_every_output_has_a_description(module: str) -> None:
    outputs = blocks((INFRA / module / "outputs.tf").read_text(), "output")
    assert outputs
    assert [name for name, body in outputs.items() if "  description = " not in body] == []


@pytest.mark.parametrize("module", MODULES)
def test_no_provider_is_configured_so_that_credentials_come_from_outside(module: str) -> None:
    assert not re.search(r"^provider\b", (INFRA / module / "main.tf").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("module", ENVIRONMENTS)
def test_an_environment_says_in_its_state_what_it_is(module: str) -> None:
    text = (INFRA / module / "main.tf").read_text()
    assert blocks(text, "resource")["lab"] == (
        f'  input = {{ environment = "{module.rpartition("/")[2]}", tags = var.tags }}\n'
    )
    assert "inventory" in blocks((INFRA / module / "outputs.tf").read_text(), "output")


def test_what_two_modules_both_ask_for_they_ask_for_alike() -> None:
    """Validation of tags and of the prefixes for SSH is repeated, as a module can only check its own variables."""
    rented = [
        blocks((INFRA / f"terraform/environments/{name}/variables.tf").read_text(), "variable")
        for name in ("openstack", "latitude")
    ]
    for name in ("tags", "name", "links", "ssh_public_key", "ssh_prefixes"):
        assert rented[0][name] == rented[1][name]
    own = blocks((INFRA / "terraform/modules/first_boot/variables.tf").read_text(), "variable")["ssh_prefixes"]
    assert own.partition("validation")[2] == rented[0]["ssh_prefixes"].partition("validation")[2]


def test_no_line_is_longer_than_the_others_may_be() -> None:
    """Formatters of Terraform and Go leave the length of a line to its author."""
    long = [
        f"{path.relative_to(INFRA)}:{number}"
        for path in INFRA.rglob("*")
        if path.suffix in {".tf", ".hcl", ".tftpl", ".go", ".json"} and ".terraform" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 120
    ]
    assert long == []
