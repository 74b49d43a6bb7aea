# SPDX-License-Identifier: Apache-2.0
"""Programs of the guest's own: a function of one of its modules and the order that it gets, as a process."""

from __future__ import annotations

import json
from pathlib import Path

PYTHON = ("/usr/bin/python3", "-I", "-S")
CODE = str(Path(__file__).parents[2])  # a folder, or the archive that a host of a lab gets
# Isolated, the interpreter does not find the code by itself. No more is imported than it takes to find the function.
_CALL = """
import sys
code, module, function, order = sys.argv[1:]
sys.path.insert(0, code)
from importlib import import_module
from json import loads
getattr(import_module(module), function)(loads(order))
"""


def command(module: str, function: str, order: dict[str, object]) -> list[str]:
    """Return the command line of ``function(order)``; the order is plain data for JSON."""
    return [*PYTHON, "-c", _CALL, CODE, module, function, json.dumps(order)]
