# SPDX-License-Identifier: Apache-2.0
"""The digest of a metric's definition: its function, and the functions and constants that it uses.

Stored values (``longfat.evidence``) belong to one definition. The code that reads tables is excluded; a repeated run
reveals its changes.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import TypeGuard

from longfat.metrics.registry import Metric
from longfat.system.identity import canonical

LENGTH = 8  # hexadecimal digits: enough to distinguish two definitions of one metric
_OURS = ("longfat.metrics.", "longfat_metrics_of_")
_NOT = ("longfat.metrics.data", "longfat.metrics.registry")


def definition_digest(metric: Metric) -> str:
    """Return 8 hexadecimal digits of a SHA-256 that do not depend on name, meaning and docstring."""
    return _digest(metric.function)


def depends_on(metric: Metric, name: str) -> bool:
    """Return whether the metric's function, or what it calls, uses a function or constant of metrics with this name."""
    return name in _reached(metric.function)


@cache
def _digest(function: Callable[..., float]) -> str:
    parts = sorted(f"{name}\0{text}" for name, text in _reached(function).items())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:LENGTH]


@cache
def _reached(function: Callable[..., object]) -> dict[str, str]:
    """Return the canonical form of a function, and of all code and constants of metrics that it uses."""
    found: dict[str, str] = {"": _form(function)}
    waiting: list[object] = [function]
    while waiting:
        for name, value in _globals_of(waiting.pop()):
            if name in found:
                continue
            if isinstance(value, bool | int | float | str | tuple):
                found[name] = repr(value)
            elif _is_ours(value):
                found[name] = _form(value)
                waiting.append(value)
    return found


def _is_ours(value: object) -> TypeGuard[Callable[..., object]]:
    module = getattr(inspect.unwrap(value) if callable(value) else value, "__module__", None) or ""
    return callable(value) and module.startswith(_OURS) and module not in _NOT


def _globals_of(value: object) -> Iterator[tuple[str, object]]:
    """Yield the global names that a function, or the methods of a class, use, with their values."""
    if inspect.isclass(value):
        for member in vars(value).values():
            member = getattr(member, "fget", None) or getattr(member, "func", None) or member
            yield from _globals_of(member)
        return
    function = inspect.unwrap(value) if callable(value) else value
    if isinstance(function, FunctionType):
        for name in _names(function.__code__):
            if name in function.__globals__:
                yield name, function.__globals__[name]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _form(value: Callable[..., object]) -> str:
    """Return the canonical form of a function or class without its decorators, which only register it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value))))
    (node,) = tree.body
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        node.decorator_list = []
        node.name = "_"
    return canonical(ast.unparse(node))
