# SPDX-License-Identifier: Apache-2.0
"""Programs of the laboratory's own: a function of one of its modules and the order that it gets, as a process.

Also what that process executes. Must not import more than it takes to find the function.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

PYTHON = ("/usr/bin/python3", "-I", "-S")


def command(module: str, function: str, order: dict[str, object]) -> list[str]:
    """The command line of ``function(order)``; the order is plain data for JSON."""
    return [*PYTHON, str(Path(__file__)), module, function, json.dumps(order)]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # isolated, the interpreter does not know it
    _module, _function, _order = sys.argv[1:]
    getattr(import_module(_module), _function)(json.loads(_order))
