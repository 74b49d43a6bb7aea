# SPDX-License-Identifier: Apache-2.0
"""The end of a command: its exit status, and the messages of errors."""

from __future__ import annotations

import inspect
import io
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import typer

from longfat.cli.options import Json, Quiet
from longfat.system.errors import LongfatError, RigError, StudyError
from longfat.system.text import visible

RUNS_NOT_VALID = 4
INTERRUPTED = 130  # as in shells, for a program ended by SIGINT
CLOSED_PIPE = 141  # as in shells, for a program ended by SIGPIPE

Function = Callable[..., bool | int | None]


def command_of(function: Function) -> Callable[..., None]:
    """Turn a function into a command: the first parameter is the console, the result determines the exit status.

    A command whose first parameter is an Output gets the options ``--json`` and ``--quiet``. The result False is status
    4, and None or True is status 0.
    """
    signature = inspect.signature(function, eval_str=True)
    console, *parameters = signature.parameters.values()
    from longfat.cli.console import Screen  # slow to import

    screen: Any = Screen if issubclass(Screen, console.annotation) else console.annotation
    has_result = "as_json" in inspect.signature(screen).parameters

    def command(context: typer.Context, as_json: bool = False, silent: bool = False, **given: Any) -> None:
        settings = {"as_json": as_json, "silent": silent} if has_result else {}

        def call() -> bool | int | None:
            _require_values(context, given)
            return function(screen(**settings), **given)

        answer = _answer(call)
        raise typer.Exit(RUNS_NOT_VALID if answer is False else 0 if answer is None or answer is True else answer)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters.insert(0, inspect.Parameter("context", kind, annotation=typer.Context))
    if has_result:
        for name, annotation in (("as_json", Json), ("silent", Quiet)):
            parameters.append(inspect.Parameter(name, kind, default=False, annotation=annotation))
    command.__signature__ = signature.replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__doc__ = function.__doc__
    return command


def complain(text: str) -> None:
    """Write the reason for an exit status to standard error."""
    sys.stderr.write(f"{visible(text)}\n")


def expect(good: bool, otherwise: str) -> bool:
    """Return whether an outcome is good, after writing the reason if it is not."""
    if not good:
        complain(otherwise)
    return good


def refuse(given: Mapping[str, object], why: str) -> None:
    """Raise StudyError if an option has a value, other than None, False or "", that would have no effect."""
    if names := [name for name, value in given.items() if value not in (None, False, "")]:
        raise StudyError(f"no effect here: {why}", where=", ".join(names))


def _require_values(context: typer.Context, given: Mapping[str, object]) -> None:
    """Raise StudyError with every option that is given without a value, such as ``--only ""``."""
    empty = [name for name, value in given.items() if isinstance(value, str) and not value.strip(", ")]
    names = [name for name in empty if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    if names:
        where = ", ".join(one.opts[0] for one in context.command.params if one.name in names)
        raise StudyError("is empty", where=where, hint="give a value, or leave it out")


def _answer(call: Callable[[], bool | int | None]) -> bool | int | None:
    """Return the result of a command, or the exit status of the error that it raised."""
    try:
        return call()
    except LongfatError as error:
        complain(f"error: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        return _interrupted()
    except (typer.Exit, typer.Abort):
        raise
    except OSError as error:
        place = None if error.filename is None else os.fsdecode(error.filename)
        complain(f"error: {RigError(f'the machine refuses: {error.strerror or error}', where=place)}")
        return RigError.exit_status
    except Exception as error:
        if _during_interrupt(error):
            return _interrupted()
        complain(_defect(error))
        return LongfatError.exit_status


def _interrupted() -> int:
    complain("interrupted; finished work is kept, and the same command continues")
    return INTERRUPTED


def _during_interrupt(error: BaseException | None) -> bool:
    """Return whether the error follows an interrupt, after which a library's clean-up may fail."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _defect(error: Exception) -> str:
    """Return the message for a defect of the program; its traceback goes into a file."""
    first = next(iter(str(error).splitlines()), "")
    message = f"error: a defect of Longfat itself: {type(error).__name__}: {first}"
    trace = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="longfat-fault-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(trace)
    except OSError:
        return f"{message}\n{trace}"
    return f"{message}\n  hint: please report it with {file.name}; finished work is kept"


class _Stream(io.FileIO):
    """A wrapper of standard output or standard error that ends the program after a failed write.

    A closed pipe, as in `./just plan STUDY | head`, gives status 141; a full disk gives a message and status 3.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # discard the buffer
            if isinstance(error, BrokenPipeError):
                raise SystemExit(CLOSED_PIPE) from None
            with suppress(OSError):
                os.write(2, f"error: the output cannot be written: {error.strerror}\n".encode())
            raise SystemExit(RigError.exit_status) from None


def guard_streams() -> None:
    """Make a failure to write to standard output or standard error end the program without a traceback."""
    for name in ("stdout", "stderr"):
        former = getattr(sys, name)
        try:
            raw = _Stream(former.fileno(), "w", closefd=False)
        except (AttributeError, OSError):  # closed before the start, or not a file
            continue
        lines = name == "stderr" or former.isatty()
        text = io.TextIOWrapper(io.BufferedWriter(raw), former.encoding, former.errors, line_buffering=lines)
        setattr(sys, name, text)
