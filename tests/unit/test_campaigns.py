# SPDX-License-Identifier: Apache-2.0
"""The campaigns see what they are there to see, and a seed says all that is drawn."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaigns import __main__ as campaign
from campaigns import rounds
from campaigns.damage import Damages
from campaigns.extreme import apart, manifest
from campaigns.kill import Kills, await_gone
from campaigns.mutations import another_text, damaged
from campaigns.processes import await_end, below, marked
from campaigns.rounds import Failed, Round, played, table
from fabricated_results import MANIFEST

from longfat import seals
from longfat.relations import judge


def test_the_table_has_a_row_for_each_thing_that_was_struck_and_always_says_what_is_bad() -> None:
    found = [Round("lock", "found"), Round("lock", "found"), Round("table", "harmless"), Round("table", "wrong", "so")]
    assert table(found) == (
        "| struck | rounds | found | harmless | lost | wrong | traceback |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| lock | 2 | 2 | 0 | 0 | 0 | 0 |\n"
        "| table | 2 | 0 | 1 | 0 | 1 | 0 |\n"
        "| all | 4 | 2 | 1 | 0 | 1 | 0 |"
    )


def test_a_round_can_be_played_again_alone_and_a_bad_one_is_told_with_its_number() -> None:
    told: list[str] = []

    def play(chance: random.Random) -> Round:
        return Round("dice", "wrong" if chance.random() < 0.3 else "found", str(chance.random()))

    many = list(played(play, 7, 0, told.append, range(1, 20)))
    (bad, *_) = (number for number, one in enumerate(many, start=1) if one.outcome == "wrong")
    assert told[0] == f"round {bad} of seed 7, dice: wrong: {many[bad - 1].text}"
    assert list(played(play, 7, 0, told.append, [bad])) == [many[bad - 1]]
    assert len(list(played(play, 7, 0, told.append))) == 1, "one round is played in any time"
    assert all(word in ("lost", "wrong", "traceback") for word in rounds.BAD)


def test_a_campaign_in_pieces_plays_each_round_once_and_its_table_has_all(tmp_path: Path) -> None:
    log, played_now = tmp_path / "log", list[float]()

    def play(chance: random.Random) -> Round:
        played_now.append(chance.random())
        return Round("dice", "found", f"{played_now[-1]}")

    for pieces in (1, 2, 3):
        found = list(played(play, 7, 0, print, log=log))
        assert [one.text for one in found] == [f"{one}" for one in played_now]
        assert len(found) == len({*played_now}) == pieces
    assert len(list(played(play, 8, 0, print, log=log))) == 1, "those of another seed are others"


@pytest.mark.parametrize("content", [b"", b"\0", b"text " * 300])
def test_a_damaged_file_is_another_one_each_time(tmp_path: Path, content: bytes) -> None:
    kinds = set()
    for number in range(60):
        path = tmp_path / str(number)
        path.write_bytes(content)
        kinds.add(damaged(path, random.Random(number)))
        assert not path.is_file() or path.is_symlink() or path.read_bytes() != content
    assert len(kinds) == (2 if not content else 8)


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    lines = MANIFEST.splitlines()
    for draw in (lambda chance: another_text(MANIFEST, lines, chance), manifest):
        assert [draw(random.Random(seed)) for seed in range(20)] == [draw(random.Random(seed)) for seed in range(20)]
        assert len({str(draw(random.Random(seed))) for seed in range(20)}) > 15


@pytest.fixture
def damages(tmp_path: Path) -> Iterator[Damages]:
    with Damages(tmp_path) as campaign:
        yield campaign


def first(damages: Damages, outcome: str) -> int:
    """The first seed of twelve whose round ends so; StopIteration when none does."""
    return next(seed for seed in range(12) if damages.play(random.Random(seed)).outcome == outcome)


def test_damage_that_nobody_checks_for_is_seen(damages: Damages, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(seals, "_changed", lambda folder, sealed: iter(()))
        unseen = first(damages, "wrong")
    assert damages.play(random.Random(unseen)).outcome not in rounds.BAD


@pytest.mark.parametrize(("name", "other"), [("drop_ratio", "drop_ra4io"), ("at=1500000.0", "at=1508000.0")])
def test_a_value_that_is_told_not_to_count_is_less_evidence(
    damages: Damages, monkeypatch: pytest.MonkeyPatch, name: str, other: str
) -> None:
    def renamed(path: Path, chance: random.Random) -> str:
        path.write_text(path.read_text(encoding="utf-8").replace(name, other), encoding="utf-8")
        return "another value"

    monkeypatch.setattr("campaigns.damage.damaged", renamed)
    for struck in ("_results", "_image", "_kernel"):
        monkeypatch.setattr(Damages, struck, Damages._evidence)
    assert {damages.play(random.Random(seed)).outcome for seed in range(12)} == {"less evidence", "harmless"}


def test_a_fault_of_the_program_is_seen(damages: Damages, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(judge, "shown", None)
        patch.setattr(judge, "check_seal", lambda *arguments: len(None))  # type: ignore[arg-type]
        faulty = first(damages, "traceback")
    assert damages.play(random.Random(faulty)).outcome not in rounds.BAD


def test_records_that_are_made_again_are_lost_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Kills(tmp_path, ("fake",), fresh=1)
    before = itertools.count()
    monkeypatch.setattr("campaigns.kill.records", lambda folder: {"one": next(before)})
    found = campaign.play(random.Random("1:2"))
    assert (found.outcome, "records that were there" in found.text) == ("lost", True), found


def test_a_stopped_process_of_a_killed_guest_may_wait_for_the_next_start_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("campaigns.kill.GONE_S", 0.1)
    number = int(subprocess.check_output(["setsid", "--wait", "sh", "-c", "sleep 60 >/dev/null & echo $!"]))
    (orphan,) = below(number)
    orphan.strike(signal.SIGSTOP)
    assert await_end(lambda: orphan.waits_for_a_start, lambda: [orphan], 10)
    assert await_gone([orphan]) == [orphan]
    campaign = Kills(tmp_path, ("fake",), fresh=0)
    monkeypatch.setattr("campaigns.kill.await_gone", lambda processes: [orphan])
    found = campaign.play(random.Random("1:2"))
    assert (found.outcome, "the next start left sleep 60" in found.text) == ("wrong", True), found
    orphan.strike(signal.SIGCONT)
    with pytest.raises(Failed, match="still running 0 s after the command: sleep 60"):
        await_gone([orphan])


def test_processes_are_found_however_far_down_and_struck_alone() -> None:
    inner = "import time; time.sleep(60)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    with subprocess.Popen([sys.executable, "-c", outer], env={"CAMPAIGN_OF_TEST": "yes"}) as process:
        end = time.monotonic() + 20
        while len(tree := below(process.pid)) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        numbers = {one.number for one in tree}
        # While a process starts its program, the kernel shows no environment of it.
        while (
            found := {one.number for one in marked("CAMPAIGN_OF_TEST", "yes")}
        ) != numbers and time.monotonic() < end:
            time.sleep(0.02)
        assert found == numbers
        assert all(one.strike(signal.SIGKILL) for one in tree)  # the outer one would end when the inner one has
    while any(one.lives for one in tree) and time.monotonic() < end:  # a signal takes effect a moment later
        time.sleep(0.02)
    assert not any(one.lives or one.strike(signal.SIGKILL) for one in tree)


def test_seconds_in_which_processes_wait_for_a_cpu_are_not_held_against_them() -> None:
    patience_s, busy = 0.4, (sys.executable, "-c", "while True: pass")
    line = ("taskset", "--cpu-list", f"{min(os.sched_getaffinity(0))}", *busy)
    with subprocess.Popen(line) as one, subprocess.Popen(line) as other:
        try:
            time.sleep(0.2)
            began = time.monotonic()
            assert not await_end(lambda: False, lambda: below(one.pid) + below(other.pid), patience_s)
            assert time.monotonic() - began > 2 * patience_s
        finally:
            one.kill()
            other.kill()


def test_connections_may_have_more_than_the_path_only_by_what_their_times_differ() -> None:
    line = "19700101000000,10.0.0.1,38682,10.0.0.2,5001,{},0.0-1.0,{},{}"
    alike = "\n".join(line.format(number, 1000, 8000) for number in (1, 2))
    assert apart(alike) == 0
    assert apart(f"{alike}\n{line.format(3, 1000, 10000)}") == pytest.approx(0.2)
    assert apart(f"{alike}\n{line.format(3, 0, 0)}") == 0


def test_an_interrupt_ends_a_campaign_with_the_table_of_what_was_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_round(*arguments: object) -> Iterator[Round]:
        yield Round("a file", "found")
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["campaign", "damage"])
    monkeypatch.setattr(campaign, "played", one_round)
    before = dict(os.environ), os.geteuid
    assert campaign.main() == 130
    assert "1 rounds, 0 bad, ended by an interrupt" in capsys.readouterr().out
    assert (dict(os.environ), os.geteuid) == before
