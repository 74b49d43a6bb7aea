# SPDX-License-Identifier: Apache-2.0
"""The look of figures: one colour and marker for each algorithm in all figures, and the settings of matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib import colors, rcParamsDefault

# Okabe and Ito's palette: distinct for colour-blind readers and in grey.
_BLUE, _ORANGE, _GREEN, _PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
_SKY, _AMBER, _BLACK, _YELLOW = "#56b4e9", "#e69f00", "#333333", "#b8a800"
_ALGORITHMS = {
    "standard": (_BLUE, "o"),
    "reno": (_BLUE, "o"),
    "highspeed": (_ORANGE, "s"),
    "scalable": (_GREEN, "^"),
    "cubic": (_PURPLE, "D"),
    "bic": (_AMBER, "v"),
    "htcp": (_SKY, "P"),
    "lp": (_YELLOW, "X"),
    "bbr": (_BLACK, "*"),
    "p-tcp": (_BLACK, "*"),
    "s-tcp": (_GREEN, "^"),
    "fast": ("#6a3d9a", "h"),
    "hs-tcp": (_ORANGE, "s"),
    "hstcp-lp": (_YELLOW, "X"),
    "h-tcp": (_SKY, "P"),
    "bic-tcp": (_AMBER, "v"),
    "ctcp": (_GREEN, "^"),
    "ctcp-muted": (_SKY, "P"),
    "ctcp-partial": (_AMBER, "v"),
    "ctcp-diffwnd": (_PURPLE, "D"),
    "ctcp-losswindow": (_BLACK, "*"),
}
_OTHERS = ((_SKY, "P"), (_AMBER, "v"), (_YELLOW, "X"), (_BLACK, "*"), (_PURPLE, "D"))
OTHERS = len(_OTHERS)  # number of distinct colours for names that are not algorithms
DASHES = ("-", "--", ":", "-.")
_FLOWS = (_AMBER, "#3d4f63", _PURPLE, _SKY, "#8c564b", _YELLOW, "#9aa7b4", "#b2182b")
SINGLE = "#3d6d99"  # the colour of a single series
INK, SOFT, LINE, GROUND = "#1c2630", "#5d6b79", "#9aa7b4", "#f1f4f7"
PAPER_MARK: dict[str, Any] = {"color": "#8a1538", "linestyle": (0, (5, 3)), "linewidth": 1.1}
PAPER_LABEL: dict[str, Any] = {"color": "#8a1538", "fontsize": 8}

SETTINGS: Any = {
    # The user's matplotlibrc has no effect, except for the backend.
    **{name: value for name, value in dict.items(rcParamsDefault) if not name.startswith("backend")},
    "figure.dpi": 150,
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e7eb",
    "legend.frameon": False,
    "legend.fontsize": 9,
    # Ids in an SVG are random without a salt, and equal figures must have equal bytes.
    "svg.hashsalt": "longfat",
    "hatch.linewidth": 0.5,
    # Text stays text, for search, copying and screen readers.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a dollar in a title is a dollar
}

PAPER_WIDTH = 3.3  # inches: a column of a paper
IN_PAPERS: Any = dict.fromkeys(
    ("font.size", "axes.labelsize", "axes.titlesize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8
)


def look(name: str, place: int = 0) -> tuple[str, str]:
    """Return colour and marker of an algorithm; ``place`` selects them for other names."""
    return _ALGORITHMS.get(name, _OTHERS[place % len(_OTHERS)])


def named_in(label: str) -> str | None:
    """Return the colour of the algorithm at the beginning of a label, such as "HighSpeed, 1 Gb/s"; None without one."""
    found = _ALGORITHMS.get(label.split()[0].lower().rstrip(",:") if label.split() else "")
    return found[0] if found else None


def order(name: str) -> tuple[int, str]:
    """Return the sort key of a series: algorithms in the order of the style, then unknown names by alphabet."""
    known = list(_ALGORITHMS)
    return (known.index(name) if name in known else len(known), name)


def flow_colours(names: Sequence[str]) -> list[str]:
    """Return the colours of the flows of one run, by their names in the legend.

    A flow that is named like an algorithm has its colour, unless two flows would have the same colour. Other flows have
    colours of no algorithm.
    """
    known = [_ALGORITHMS.get(name.lower().removesuffix(" tcp"), (None,))[0] for name in names]
    spare = iter([colour for colour in _FLOWS if colour not in known])
    if len({colour for colour in known if colour}) < sum(colour is not None for colour in known):
        known, spare = [None] * len(names), iter(_FLOWS)
    return [colour or next(spare, _BLACK) for colour in known]


def pale(colour: str, part: float = 0.6) -> str:
    """Mix a colour with a share of white, for values next to a highlighted one."""
    red, green, blue = (1 - (1 - channel) * (1 - part) for channel in colors.to_rgb(colour))
    return colors.to_hex((red, green, blue))
