# SPDX-License-Identifier: Apache-2.0
"""Terraform, made ready once for all tests of infra/."""

from __future__ import annotations

import pytest
from terraform_toolbox import Terraform, make_terraform


@pytest.fixture(scope="session")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Terraform:
    return make_terraform(tmp_path_factory.mktemp("terraform"))
