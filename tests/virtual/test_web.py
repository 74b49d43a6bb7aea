# SPDX-License-Identifier: Apache-2.0
"""Web users of a guest: a real server, a real client, and what they say against what the network and the model say."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from guests import delay_path, run

from longfat.guest import surge
from longfat.guest.web import SPARE_FILES
from longfat.spec.gates import Evidence
from longfat.spec.runspec import RunSpec, Web
from longfat.study.traffic import misses

pytestmark = pytest.mark.virtual

RATE_BPS = 100_000_000
RTT_US = 20_000
USERS = Web("surf", "client1", "server", 20, "scalable", 10_000_000, "surge", 100_000)


def web_spec(*web: Web) -> RunSpec:
    """Users over a path of 100 Mbit/s and 20 ms whose queue nothing overflows."""
    return delay_path(RATE_BPS, RTT_US, 10_000, web=web)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run with users only, which no test writes to."""
    return run(web_spec(USERS), tmp_path_factory.mktemp("web") / "run")


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def test_the_run_is_valid(folder: Path) -> None:
    assert read(folder, "outcome.json")["status"] == "ok"
    achieved, flows, web = (read(folder, name) for name in ("achieved.json", "flows.json", "web.json"))
    assert misses(Evidence(web_spec(USERS), achieved, flows, {"web": web})) == ()
    assert achieved["web"] == [{"web": "surf", "ccas": ["scalable"]}]


def test_users_get_about_as_many_replies_as_the_model_asks_for(folder: Path) -> None:
    (web,) = read(folder, "web.json")
    assert web["errors"] == {}
    # OFF times are a tenth of the model's; what is left of a user's time, the replies take.
    off_s = surge.mean_off_s() / 10 / (1 + surge.mean_embedded())
    expected = USERS.users * USERS.duration_us / 1e6 / (off_s + web["mean_reply_us"] / 1e6)
    assert web["replies"] == pytest.approx(expected, rel=0.25)
    assert RTT_US < web["mean_reply_us"] < 20 * RTT_US


def test_the_bytes_of_the_replies_crossed_the_senders_link(folder: Path) -> None:
    (web,) = read(folder, "web.json")
    with (folder / "queues.csv").open(newline="") as table:
        rows = [row for row in csv.DictReader(table) if row["interface"] == "client1-eth0"]
    on_the_wire = int(rows[-1]["sent_bytes"])
    assert web["bytes_received"] > 10_000 * USERS.users
    assert 1.02 < on_the_wire / web["bytes_received"] < 1.2  # headers, and replies to packets without data


def test_a_server_of_few_users_may_keep_every_file_open(tmp_path: Path) -> None:
    users = dataclasses.replace(USERS, model="surge_files", off_ppm=10_000, duration_us=5_000_000)
    web = read(run(web_spec(users), tmp_path / "run"), "web.json")[0]
    # Nearly each of these is for a file that was not open yet, and there were none too many to open.
    assert web["replies"] > 2 * USERS.users + SPARE_FILES
    assert web["errors"] == {}
