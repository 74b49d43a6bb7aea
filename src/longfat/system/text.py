# SPDX-License-Identifier: Apache-2.0
"""Untrusted text on a terminal, with visible control characters, and reasons as sentences. Standard library only."""

from __future__ import annotations

import re

# C0 without tab and newline, DEL, C1, and the characters that change the direction of the text around them.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Before a reason: the type of the exception. What KeyError says is only the key.
_TYPE = re.compile(r"(?!KeyError)[A-Z]\w*: (?=\S)")


def has_controls(text: str) -> bool:
    """Return whether a text has characters that change a terminal's state or the order of letters."""
    return _CONTROL.search(text) is not None


def visible(text: str) -> str:
    """Return the text with each control character as a Python escape sequence."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def sentence(reason: str) -> str:
    """Return a reason that guest or host gives, without the type of the exception before it."""
    return reason[found.end() :] if (found := _TYPE.match(reason)) else reason
