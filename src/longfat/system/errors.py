# SPDX-License-Identifier: Apache-2.0
"""Errors of the project. Functions raise them; only ``longfat.cli`` exits, with the exit status of the class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class LongfatError(Exception):
    """An error for the user. ``where`` names file, line and key, or the host; ``hint`` is the remedy."""

    exit_status = 1

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        # Pickle passes positional arguments only.
        return (_rebuild, (type(self), self.message, self.where, self.hint))


def _rebuild(cls: type[LongfatError], message: str, where: str | None, hint: str | None) -> LongfatError:
    return cls(message, where=where, hint=hint)


@dataclass(frozen=True)
class Problem:
    """A fault in a file of the user: its place, the value given and the values allowed."""

    file: str
    line: int | None
    key: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = ": ".join(part for part in (place, self.key, self.message) if part)
        return f"{text} ({self.hint})" if self.hint else text


SHOWN_PROBLEMS = 100


class StudyError(LongfatError):
    """A fault of the study, its claims or the command line, which the user can fix. Exit status 2."""

    exit_status = 2

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> None:
        self.problems = problems
        listing = "".join(f"\n  {problem}" for problem in problems[:SHOWN_PROBLEMS])
        if len(problems) > SHOWN_PROBLEMS:
            listing += f"\n  and {len(problems) - SHOWN_PROBLEMS} more"
        super().__init__(message + listing, where=where, hint=hint)

    @property
    def listed(self) -> tuple[Problem, ...]:
        """The problems; the error itself if it has no list."""
        return self.problems or (Problem(self.where or "", None, "", self.message, self.hint),)


def all_of(*checks: Callable[[], Any]) -> list[Any]:
    """Return the results of independent checks. Raises StudyError with the problems of all that fail."""
    results, errors = [], []
    for check in checks:
        try:
            results.append(check())
        except StudyError as error:
            errors.append(error)
    problems = tuple(dict.fromkeys(one for error in errors for one in error.listed))
    if len(errors) > 1 and len(problems) > 1:
        raise StudyError(f"{len(problems)} problems", problems=problems)
    if errors:
        raise errors[0]
    return results


class RigError(LongfatError):
    """A fault of the machine, a tool, the kernel or the image. Exit status 3."""

    exit_status = 3


class SettledError(RigError):
    """A failure of a run that a repetition would not change. Exit status 3."""


class RecordError(LongfatError):
    """A stored file that is damaged or incomplete. Exit status 3."""

    exit_status = 3
