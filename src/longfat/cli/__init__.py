# SPDX-License-Identifier: Apache-2.0
"""The command line: ``root`` has the list of commands, and each command is a module of its name."""

from longfat.cli.root import app, main

__all__ = ["app", "main"]
