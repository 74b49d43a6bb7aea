# SPDX-License-Identifier: Apache-2.0
"""House rules for Terraform modules; needs no Terraform."""

from __future__ import annotations

import re

import pytest
from terraform_toolbox import ENVIRONMENTS, INFRA, MODULES

FIVE = {"main.tf", "variables.tf", "outputs.tf", "versions.tf", "README.md"}


def blocks(module: str, kind: str) -> dict[str, str]:
    """Return the top-level blocks of one kind in a module, by their last label, in the format of terraform fmt."""
    text = "\n".join(path.read_text() for path in sorted((INFRA / module).glob("*.tf")))
    return dict(re.findall(rf'^{kind} (?:"[^"]+" )*"([^"]+)" {{\n(.*?)^}}', text, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_the_five_files(module: str) -> None:
    assert {path.name for path in (INFRA / module).iterdir()} >= FIVE


@pytest.mark.parametrize("module", MODULES)
def test_every_variable_has_type_description_and_validation(module: str) -> None:
    variables = blocks(module, "variable")
    assert variables
    for name, body in variables.items():
        for wanted in ("description", "type", "validation"):
            assert re.search(rf"^  {wanted}\b", body, flags=re.MULTILINE), f"{name} has no {wanted}"


@pytest.mark.parametrize("module", MODULES)
def test_every_output_has_a_description(module: str) -> None:
    outputs = blocks(module, "output")
    assert outputs
    assert [name for name, body in outputs.items() if "  description = " not in body] == []


@pytest.mark.parametrize("module", MODULES)
def test_no_provider_is_configured_so_that_credentials_come_from_outside(module: str) -> None:
    assert not re.search(r"^provider\b", (INFRA / module / "main.tf").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("module", ENVIRONMENTS)
def test_an_environment_says_in_its_state_what_it_is(module: str) -> None:
    assert blocks(module, "resource")["lab"] == (
        f'  input = {{ environment = "{module.rpartition("/")[2]}", tags = var.tags }}\n'
    )
    assert {"inventory", "machines"} <= blocks(module, "output").keys()


def test_the_prefixes_for_ssh_are_validated_in_the_same_way_in_both_modules() -> None:
    """A module can validate only its own variables."""
    modules = "terraform/environments/latitude", "terraform/modules/first_boot"
    one, other = (blocks(module, "variable")["ssh_prefixes"].partition("validation")[2] for module in modules)
    assert one == other


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
