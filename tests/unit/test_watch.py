# SPDX-License-Identifier: Apache-2.0
"""The live page shows the runs that are there, from this machine only, and changes no results."""

from __future__ import annotations

import json
import shutil
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tiny_study import call, write_tiny

from longfat.cli.console import Output
from longfat.cli.watch import watch
from longfat.data.study_folder import StudyFolder
from longfat.execute.results import open_results


def answer(address: str) -> bytes:
    """Return the body of an answer."""
    with urllib.request.urlopen(address) as response:
        body: bytes = response.read()
        return body


def test_the_live_page_has_the_runs_and_claims_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny(tmp_path)
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    assert call("run", "tiny", "--backend", "fake").exit_code == 0
    place = tmp_path / "results" / "tiny"
    gone = sorted((place / "raw").glob("delay*"))[-1]
    shutil.rmtree(gone)
    before = sorted(place.rglob("*"))
    folder = StudyFolder(tmp_path / "experiments" / "tiny")
    with open_results(place) as results, watch(folder, results, Output(width=200)):
        address = capsys.readouterr().out.split()[-1]
        state = json.loads(answer(f"{address}state"))
        assert b"<iframe" in answer(address)
        with socket.create_connection(("127.0.0.1", int(address.split(":")[2].split("/")[0]))) as connection:
            connection.sendall(b"GET state HTTP/1.0\r\n\r\n")  # without the secret part of the address
            assert b"404" in connection.recv(200).splitlines()[0]
        for wrong in (address.rsplit("/", 2)[0] + "/", f"{address}../study.yaml", f"{address}report.html"):
            with pytest.raises(urllib.error.HTTPError):
                answer(wrong)
    assert sum(one["done"] for one in state["experiments"]) == 3
    assert sum(one["total"] for one in state["experiments"]) == 4
    assert [one["claim"] for one in state["claims"]] == [claim.id for claim in folder.claims]
    assert (place / "raw" / state["run"]).is_dir() and state["curves"]
    assert [one for one in sorted(place.rglob("*")) if one.name != ".in-use"] == [
        one for one in before if one.name != ".in-use"
    ]
    with pytest.raises(urllib.error.URLError):
        answer(address)
