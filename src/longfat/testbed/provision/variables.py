# SPDX-License-Identifier: Apache-2.0
"""The variables of a lab: lab.tfvars.json in its folder, checked before Terraform reads it.

Owns which variables must and may be there. The environment's own validation checks the values.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

from longfat.errors import Problem, StudyError
from longfat.testbed.provision.environments import Environment, Variable, variables_of


def read_variables(path: Path, environment: Environment) -> dict[str, Any]:
    """The variables in the file ``path``. Raises StudyError with everything that is missing or unknown."""
    declared = {variable.name: variable for variable in variables_of(environment)}
    required = [variable for variable in declared.values() if variable.required]
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(
            f"this file is missing; it has the variables of a lab of environment {environment.name}, at least:\n"
            + "\n".join(f"  {variable.name}: {variable.description}" for variable in required),
            where=str(path),
            hint=_where_to_read(environment),
        ) from None
    except json.JSONDecodeError as error:
        raise StudyError(f"not JSON: {error.msg}", where=f"{path}:{error.lineno}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(values, dict):
        raise StudyError("not a JSON object with the names of variables", where=str(path))
    problems = [
        Problem(str(path), None, variable.name, "missing", variable.description)
        for variable in required
        if variable.name not in values
    ]
    problems += [
        Problem(str(path), None, name, f"environment {environment.name} has no such variable", _nearest(name, declared))
        for name in values
        if name not in declared
    ]
    if problems:
        raise StudyError(
            "the lab's variables are incomplete or unknown",
            problems=tuple(problems),
            hint=_where_to_read(environment),
        )
    return values


def _where_to_read(environment: Environment) -> str:
    folder = f"infra/terraform/environments/{environment.name}"
    return f"{folder}/README.md lists what is needed, {folder}/variables.tf the form of each value"


def _nearest(name: str, declared: dict[str, Variable]) -> str | None:
    near = difflib.get_close_matches(name, declared, n=1)
    return f"did you mean {near[0]}?" if near else None
