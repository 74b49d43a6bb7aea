# SPDX-License-Identifier: Apache-2.0
"""The command line: ``root`` lists the commands, and each command is a module with its name."""

from longfat.cli.root import app, main

__all__ = ["app", "main"]
