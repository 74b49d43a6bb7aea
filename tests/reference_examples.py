# SPDX-License-Identifier: Apache-2.0
"""The examples in the tables of all keys, as one study with an experiment for each."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from longfat.study.study_schema import reference
from longfat.study.traffic import SECTIONS

_SECTION = re.compile(r"^## `([^\n]+)`\n\n\|.*?\n\n(?:```yaml\n(.*?)```\n)?", re.MULTILINE | re.DOTALL)
LINE = {"kind": "dumbbell", "rate": "10 Mbit/s", "host_rate": "1 Gbit/s", "rtt": "40 ms", "senders": 2}
MAST = {"kind": "graph", "senders": ["client1"], "receivers": ["server"], "routers": ["mast"]}
TO_THE_MAST = {"between": ["client1", "mast"], "rate": "100 Mbit/s"}
TRACE = "\n".join(str(ms) for ms in range(1, 100) for _ in range(ms % 3)) + "\n"
LONGEST = "6 s"  # a segment of a film lasts for 4 s


@functools.cache
def examples() -> dict[str, Any]:
    """What stands in YAML below each table of the page, by the table's title; empty below one without an example."""
    return {title: text and yaml.safe_load(text) for title, text in _SECTION.findall(reference())}


def write_study(folder: Path) -> Path:
    """A study of all examples, each for some seconds; its path."""
    (folder / "cell.trace").write_text(TRACE, encoding="utf-8")
    study = {
        "format": 2,
        "study": "examples",
        "title": "The examples of the reference",
        "algorithms": {"reno": {"cca": "reno"}},
        "hosts": {"sysctls": {"net.ipv4.tcp_ecn": 1}},
        "experiments": [
            {"id": f"{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}-{number}", **parts}
            for title, found in examples().items()
            for number, parts in enumerate(_experiments(title, found))
        ],
        "profiles": {"quick": {"duration": LONGEST}},
    }
    path = folder / "study.yaml"
    path.write_text(json.dumps(study, indent=1), encoding="utf-8")  # which is YAML without aliases
    return path


def _experiments(title: str, found: Any) -> Iterator[dict[str, Any]]:
    name = title.removesuffix("[]")
    if not found:
        return
    if name in SECTIONS:
        beside = {} if name == "flows" else {"flows": [_flow("client2", "server")]}
        yield {"topology": LINE, name: found[name], **beside}
    elif title.startswith("topology: "):
        for one in found:
            receiver = "server1" if one["topology"].get("receivers") == 2 else "server"
            yield {**one, "flows": [_flow("client1", receiver)]}
    elif title == "topology.links[]":
        for link in found["links"]:
            yield {"topology": {**MAST, "links": [TO_THE_MAST, link]}, "flows": [_flow("client1", "server")]}
    else:
        delay = {"kind": "delay", "rate": "10 Mbit/s", "rtt": "40 ms"} if "loss" in found else LINE
        kernel = {"kernel": "linux-7.3"} if title.endswith("dualpi2") else {}
        yield {"topology": {**delay, **found}, "flows": [_flow("client1", "server")], **kernel}


def _flow(sender: str, receiver: str) -> Mapping[str, str]:
    return {"name": "beside", "from": sender, "to": receiver, "algorithm": "reno", "duration": "1 s"}
