# SPDX-License-Identifier: Apache-2.0
"""Functions of the guest's modules as processes."""

from __future__ import annotations

import json
from pathlib import Path

PYTHON = ("/usr/bin/python3", "-I", "-S")
CODE = str(Path(__file__).parents[2])  # a folder, or the archive on a host of a lab
# The isolated interpreter does not find the code by itself. Every further import would cost time.
_CALL = """
import sys
code, module, function, order = sys.argv[1:]
sys.path.insert(0, code)
from importlib import import_module
from json import loads
getattr(import_module(module), function)(loads(order))
"""


def command(module: str, function: str, order: dict[str, object]) -> list[str]:
    """Return the command line of ``function(order)``; the order is JSON data."""
    return [*PYTHON, "-c", _CALL, CODE, module, function, json.dumps(order)]
