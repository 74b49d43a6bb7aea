# SPDX-License-Identifier: Apache-2.0
"""A drawing of an experiment's network: hosts, routers, the settings of each interface, and the flows.

Senders are on the left, receivers on the right. All settings come from the plan.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from pydantic import Field

from longfat.figures import style
from longfat.figures.base import Figure, Sources
from longfat.figures.parts import WIDTH, FigureData, ascending, wrapped
from longfat.plan.holders import card_words
from longfat.plan.model import Plan, PlannedRun
from longfat.spec.network import Port, ports
from longfat.spec.runspec import RunSpec, SentOverTcp
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding, unknown
from longfat.study.study import Study
from longfat.study.traffic import section_of

COLUMNS = ("node", "role", "interface", "peer", "rate_bps", "delay_us", "queue", "queue_limit", "mtu_bytes", "drops")
_BOX = (1.6, 0.82)  # width and height of a host in inches, like all lengths below
_ROUTER = (0.74, 0.5)
_ROW, _FLOW_ROW, _MARGIN = 1.0, 0.27, 0.12
_GAP, _LETTER = 0.8, 0.055  # smallest gap between columns, and width of each character of the text in it
_BEHIND: Any = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
_SMALL: Any = {"fontsize": 6.5, "color": style.SOFT, "linespacing": 1.25}


class Topology(Figure):
    """The network of an experiment: its hosts, its routers, and the settings of each interface."""

    artifact: f.Name = Field(alias="topology")
    experiment: f.ExperimentId

    @property
    def broad(self) -> bool:
        """Whether a paper shows it across all columns."""
        return True

    def findings(self, study: Study) -> Iterator[Finding]:
        """Yield unknown names."""
        known = [experiment.id for experiment in study.experiments]
        if self.experiment not in known:
            yield Finding(("experiment",), *unknown("experiment", self.experiment, known))

    def experiments(self, study: Study) -> tuple[str, ...]:
        """Return the experiment whose network it shows."""
        return (self.experiment,)

    def data(self, sources: Sources) -> FigureData:
        """Compute a row for each interface, with the range of each number that a factor varies."""
        runs = _runs(sources.plan, self)
        if not runs:
            return FigureData(COLUMNS, ())
        roles = {node.name: node.role for node in runs[0].spec.nodes}
        rows = []
        for same in zip(*(ports(run.spec) for run in runs), strict=True):
            port = same[0]
            numbers = (
                _span(same, lambda one: one.egress.rate_bps),
                _span(same, lambda one: one.egress.delay_us),
                port.egress.queue.kind,
                _span(same, lambda one: one.egress.queue.limit_packets or one.egress.queue.limit_bytes),
                _span(same, lambda one: one.mtu_bytes),
                len(port.egress.drops),
            )
            rows.append((port.node, roles[port.node], port.name, port.peer, *numbers))
        return FigureData(COLUMNS, tuple(rows))

    def draw(self, canvas: Canvas, data: FigureData, sources: Sources) -> None:
        """Draw nodes, links and flows."""
        runs = _runs(sources.plan, self)
        network = runs[0].spec
        axes = canvas.add_subplot()
        axes.axis("off")
        columns = _columns(network)
        deepest = max(list(columns.values()).count(column) for column in columns.values())
        flows_height = _FLOW_ROW * len(network.traffic)
        axes.set_xlim(0, WIDTH)
        axes.set_ylim(-flows_height - _MARGIN, deepest * _ROW)
        roles = {node.name: node.role for node in network.nodes}
        same = list(zip(*(ports(run.spec) for run in runs), strict=True))
        places = _places(network, same, deepest)
        own = {port[0].node: port for port in same}
        for near, far in zip(same[::2], same[1::2], strict=True):
            _draw_link(axes, near, far, places, roles)
        for name, (x, y) in places.items():
            router = roles[name] == "router"
            _draw_node(axes, name, (x, y), router, "" if router else f"{roles[name]}\n{_words(own[name])}")
        _draw_flows(axes, runs, places, _names(sources.study))

    def height(self, data: FigureData, sources: Sources) -> float:
        """Return the height of the drawing in inches."""
        runs = _runs(sources.plan, self)
        if not runs:
            return 2.0
        deepest = max(list(_columns(runs[0].spec).values()).count(column) for column in _columns(runs[0].spec).values())
        return 0.45 + deepest * _ROW + _FLOW_ROW * len(runs[0].spec.traffic) + 2 * _MARGIN


def _names(study: Study) -> dict[str, str]:
    """Return the study's names of algorithms by congestion control, without those that several algorithms use."""
    ccas = Counter(one.cca for one in study.header.algorithms.values())
    return {one.cca: name for name, one in study.header.algorithms.items() if one.cca and ccas[one.cca] == 1}


def _runs(plan: Plan, spec: Topology) -> list[PlannedRun]:
    """Return the runs with the network of the experiment's first point, sorted by their factors."""
    runs = [run for run in plan.runs if run.experiment == spec.experiment]
    runs.sort(key=lambda run: ([ascending(value) for _, value in sorted(run.factors.items())], run.repetition))
    shape = _shape(runs[0].spec) if runs else None
    return [run for run in runs if _shape(run.spec) == shape]


def _shape(spec: RunSpec) -> Any:
    return [(port.name, port.peer) for port in ports(spec)], [(one.sender, one.receiver) for one in spec.traffic]


def _columns(spec: RunSpec) -> dict[str, int]:
    """Return the column of each node: its number of links from the senders."""
    columns = {node.name: 0 for node in spec.nodes if node.role == "sender"}
    while True:
        reached = {
            port.peer: columns[port.node] + 1
            for port in ports(spec)
            if port.node in columns and port.peer not in columns
        }
        if not reached:
            break
        columns |= reached
    return columns


def _places(network: RunSpec, same: Sequence[Sequence[Port]], deepest: int) -> dict[str, tuple[float, float]]:
    """Return the centre of each node; the gaps between columns are as wide as the texts in them."""
    columns = _columns(network)
    routers = {node.name for node in network.nodes if node.role == "router"}
    ranks = [[name for name, own in columns.items() if own == column] for column in range(max(columns.values()) + 1)]
    widths = [max((_ROUTER if name in routers else _BOX)[0] for name in names) for names in ranks]
    lines = [
        ({port[0].node, port[0].peer}, len(line))
        for port in same
        if port[0].node in routers
        for line in _words(port).splitlines()
    ]
    gaps = [
        max([_GAP, *(_LETTER * length for ends, length in lines if ends <= {*one, *other})])
        for one, other in itertools.pairwise(ranks)
    ]
    unit = (WIDTH - 2 * _MARGIN - sum(widths)) / sum(gaps)
    places, left = {}, _MARGIN
    for names, width, gap in zip(ranks, widths, [*gaps, 0.0], strict=True):
        for row, name in enumerate(names):
            places[name] = left + width / 2, deepest * _ROW / 2 + ((len(names) - 1) / 2 - row) * _ROW
        left += width + unit * gap
    return places


def _draw_node(axes: Axes, name: str, at: tuple[float, float], router: bool, words: str) -> None:
    width, height = _ROUTER if router else _BOX
    corner = "round,pad=0,rounding_size=0.2" if router else "square,pad=0"
    low_left = at[0] - width / 2, at[1] - height / 2
    fill = "white" if router else style.GROUND
    axes.add_patch(
        FancyBboxPatch(low_left, width, height, boxstyle=corner, facecolor=fill, edgecolor=style.SOFT, zorder=3)
    )
    if words:
        words = wrapped(words, width, _SMALL["fontsize"])
        axes.text(at[0], at[1] + height / 2 - 0.07, name, ha="center", va="top", weight="bold", zorder=4)
        axes.text(at[0], at[1] - height / 2 + 0.07, words, ha="center", va="bottom", zorder=4, **_SMALL)
    else:
        axes.text(*at, name, ha="center", va="center", weight="bold", zorder=4)


def _draw_link(
    axes: Axes,
    near: Sequence[Port],
    far: Sequence[Port],
    places: Mapping[str, tuple[float, float]],
    roles: Mapping[str, str],
) -> None:
    """Draw a line with the MTU on it, and the settings of the ports of routers above and below it."""
    (x, y), (end_x, end_y) = places[near[0].node], places[far[0].node]
    axes.plot([x, end_x], [y, end_y], color=style.LINE, lw=1.2, zorder=1)
    left = x + (_ROUTER if roles[near[0].node] == "router" else _BOX)[0] / 2
    right = end_x - (_ROUTER if roles[far[0].node] == "router" else _BOX)[0] / 2
    middle = (left + right) / 2
    height = y + (end_y - y) * (middle - x) / (end_x - x)
    mtu = f"MTU {_span(near, lambda port: port.mtu_bytes)}"
    axes.text(middle, height, mtu, ha="center", va="center", zorder=2, bbox=_BEHIND, **_SMALL)
    for port, lift, side, arrow in (
        (near, 0.11, "bottom", "\N{RIGHTWARDS ARROW}"),
        (far, -0.11, "top", "\N{LEFTWARDS ARROW}"),
    ):
        if roles[port[0].node] == "router" and (words := _words(port)):
            words = wrapped(f"{arrow} {words}", right - left, _SMALL["fontsize"])
            axes.text(middle, height + lift, words, ha="center", va=side, zorder=2, **_SMALL)


def _draw_flows(
    axes: Axes, runs: Sequence[PlannedRun], places: Mapping[str, tuple[float, float]], names: Mapping[str, str]
) -> None:
    """Draw an arrow for each traffic below the network, from sender to receiver."""
    flows = runs[0].spec.traffic
    colours = style.flow_colours([flow.name for flow in flows])
    for number, (flow, colour) in enumerate(zip(flows, colours, strict=True)):
        start, end = places[flow.sender][0], places[flow.receiver][0]
        y = -_FLOW_ROW * (number + 0.5) - _MARGIN / 2
        axes.add_patch(
            FancyArrowPatch((start, y), (end, y), arrowstyle="-|>", mutation_scale=9, color=colour, lw=1.4, shrinkA=0)
        )
        words = wrapped(_flow_words([run.spec.traffic[number] for run in runs], names), WIDTH, 7)
        axes.text((start + end) / 2, y, words, ha="center", va="center", fontsize=7, bbox=_BEHIND)


def _flow_words(flows: Sequence[SentOverTcp], names: Mapping[str, str]) -> str:
    flow = flows[0]
    words = section_of(flow).drawn(flow)
    drawn = f", {words}" if words else ""
    algorithms = ", ".join(sorted({names.get(one.cca, one.cca) for one in flows}, key=style.order))
    return f"{flow.name}: {flow.sender} to {flow.receiver}{drawn}, {algorithms}"


def _words(port: Sequence[Port]) -> str:
    """Format the settings of an interface for sent packets; "" without settings."""
    egress = port[0].egress
    if egress.rate_bps is None and not egress.delay_us and not egress.impairment and not egress.card:
        return ""
    rate = egress.rate_bps is not None
    in_packets = egress.queue.limit_packets is not None
    limit = _span(port, lambda one: one.egress.queue.limit_packets or one.egress.queue.limit_bytes)
    size = f"{_text(limit, 1)} packets" if in_packets else f"{_text(limit, 1000, '.0f')} kB"
    words = (
        _rate(port) if rate else "",
        f"{egress.queue.kind} of {size}" if rate else "",
        f"delay {_text(_span(port, lambda one: one.egress.delay_us), 1000)} ms" if egress.delay_us else "",
        egress.impairment.words if egress.impairment else "",
        card_words(port[0]),
        "rate of a trace" if egress.trace else "",
        f"changes {len(egress.changes)} times" if egress.changes else "",
        "drops one packet" if egress.drops else "",
    )
    return "\n".join(word for word in words if word)


def _rate(port: Sequence[Port]) -> str:
    span = _span(port, lambda one: one.egress.rate_bps)
    giga = isinstance(span, int) and span >= 1_000_000_000
    return f"{_text(span, 1_000_000_000 if giga else 1_000_000)} {'Gbit/s' if giga else 'Mbit/s'}"


def _span(same: Iterable[Port], number: Callable[[Port], int | None]) -> int | str | None:
    """Return the number of an interface if all runs agree, else the range as a text."""
    found = sorted({value for port in same if (value := number(port)) is not None})
    if len(found) <= 1:
        return found[0] if found else None
    return f"{found[0]} to {found[-1]}"


def _text(span: int | str | None, divisor: int, form: str = ".10g") -> str:
    """Format a number, or both ends of a range, in another unit."""
    return " to ".join(f"{int(part) / divisor:,{form}}" for part in str(span).split(" to "))
