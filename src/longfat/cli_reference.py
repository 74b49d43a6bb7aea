# SPDX-License-Identifier: Apache-2.0
"""The reference of the commands as Markdown, made from what they say of themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer

from longfat.cli import app
from longfat.cli_options import HEADINGS
from longfat.cli_program import NAME

_HEAD = """\
# Commands

<!-- Generated: python -m longfat.cli_reference > docs/commands.md -->

`./just COMMAND` sets the machine up and does what `longfat COMMAND` does; `./just` alone lists all. `longfat` itself
is `.venv/bin/longfat`; `./just longfat COMMAND` starts it too. `longfat --version` prints version, commit, kernels and
image. A command with `--json` prints nothing but JSON on standard output.

Exit status: 0 all is well, 1 a defect of the program, 2 a wrong study or command line, 3 the machine or a tool is at
fault, 4 runs are invalid or differ, 75 the time given was up, 130 interrupted. `shell` ends with the status of its last
command.

Completion for the present shell: `eval "$(longfat completion bash)"` (or zsh), `longfat completion fish | source`.
"""


def reference() -> str:
    """The whole page."""
    root: Any = typer.main.get_command(app)
    sections: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    for name, command in sorted(root.commands.items()):
        if not command.hidden:
            sections.setdefault(command.rich_help_panel, []).extend(_command(f"{NAME} {name}", command))
    parts = [_HEAD]
    for heading, lines in sections.items():
        parts += [f"## {heading}\n", *lines] if lines else []
    return "\n".join(parts)


def _command(name: str, command: Any) -> Iterator[str]:
    """The lines about a command, or about all below one."""
    if hasattr(command, "commands"):
        for inner, below in sorted(command.commands.items()):
            yield from _command(f"{name} {inner}", below)
        return
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    yield f"### `{' '.join([name, *map(_argument, arguments)])}`"
    yield f"{' '.join((command.help or '').split())}\n"
    for one in arguments:
        if one.help:
            yield f"- `{_name(one)}`: {one.help}"
    context = command.make_context(name, [], resilient_parsing=True)
    yield from (_option(one, context) for one in options)
    if arguments or options:
        yield ""


def _argument(one: Any) -> str:
    name = f"{_name(one)}..." if one.nargs < 0 else _name(one)
    return name if one.required else f"[{name}]"


def _name(one: Any) -> str:
    return str(one.metavar or one.name.upper())


def _option(one: Any, context: Any) -> str:
    """What the help says of an option."""
    names, told = one.get_help_record(context)
    return f"- `{names}`: {' '.join(told.split())}"


if __name__ == "__main__":
    sys.stdout.write(reference())
