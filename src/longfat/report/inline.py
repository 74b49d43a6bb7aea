# SPDX-License-Identifier: Apache-2.0
"""Drawings of matplotlib as part of a page: smaller, without a title, and with unique ids."""

from __future__ import annotations

import html
import re

from longfat.figures.parts import TITLE

_PROLOG = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_OPENING = re.compile(r'<svg[^>]*?viewBox="([^"]+)"[^>]*>')
_TAG = re.compile(r"<[^>]*>")
_NUMBER = re.compile(r"-?\d+\.\d+")
_PATH = re.compile(r' d="([^"]*)"')
_ID = re.compile(r' id="([^"]+)"')
_USED = re.compile(r"#([\w.-]+)")
_TITLE = re.compile(rf'<g id="{TITLE}">.*?</g>', re.DOTALL)
_FONT = re.compile(r"font-family: [^;\"]*;? ?")
_NO_ROTATION = re.compile(r' transform="rotate\(-?0 [^)]*\)"')
_LINK = re.compile(r'<a xlink:href="(#explore[^"]*)"[^>]*>')  # not in the order of the tab key: the page has links
_BETWEEN = re.compile(r">\s+<")
TITLE_HEIGHT = 14  # points of a line of a title; the page has the title as text
LONG = 400  # most characters of a path with full precision; longer curves are rounded to a tenth of a point


def inlined(svg: str, name: str, title: str) -> str:
    """Return the SVG element of a file of matplotlib, with ``name`` in front of its ids."""
    text = _PROLOG.sub("", svg)
    cut = TITLE_HEIGHT * sum(found.count("<text") for found in _TITLE.findall(text))
    text = _TITLE.sub("", text)
    text = _PATH.sub(lambda found: f' d="{_path(found[1])}"', text)
    text = _TAG.sub(lambda tag: _NUMBER.sub(lambda found: _rounded(found[0], 2), tag[0]), text)
    text = _OPENING.sub(lambda found: _opening(found[1], cut, title), text, count=1)
    used = set(_USED.findall(text))
    text = _ID.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", text)
    text = _USED.sub(lambda found: f"#{name}-{found[1]}" if f' id="{name}-{found[1]}"' in text else found[0], text)
    text = _LINK.sub(r'<g data-explore="\1">', text).replace("</a>", "</g>")
    text = _NO_ROTATION.sub("", _FONT.sub("", text)).replace("xlink:href", "href")
    return _BETWEEN.sub("><", text).strip()


def _opening(box: str, cut: int, title: str) -> str:
    """Return the opening tag with the view box cut by ``cut`` points at the top."""
    left, top, width, height = (float(number) for number in box.split())
    seen = f"{left:g} {top + cut:g} {width:g} {height - cut:g}"
    return f'<svg viewBox="{seen}" role="img" aria-label="{html.escape(title)}">'


def _path(data: str) -> str:
    digits = 1 if len(data) > LONG else 2
    joined = _NUMBER.sub(lambda found: _rounded(found[0], digits), " ".join(data.split()))
    return re.sub(r" ?([A-Za-z]) ?", r"\1", joined)


def _rounded(number: str, digits: int) -> str:
    text = f"{float(number):.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
