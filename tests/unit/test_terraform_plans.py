# SPDX-License-Identifier: Apache-2.0
"""Terraform's plans as changes and cost, and an interrupt while it works."""

from __future__ import annotations

import os
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from longfat.backends.testbed.provision.terraform import Changes, Price, describe, interrupts_for_child, read_changes


def test_the_cost_until_the_expiry_is_computed_from_the_price_of_an_hour() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    changes = Changes((), (), datetime(2030, 1, 2, tzinfo=UTC))
    assert "60.00 EUR" in str(list(describe(changes, Price(2.5, "EUR"), now, rented=True)))


def test_a_plan_is_read_by_its_actions() -> None:
    actions = {"a": "no-op", "b": "create", "c": "delete create", "d": "create delete", "e": "update", "f": "delete"}
    values = {"before": {"tag": 1, "image": "a"}, "after": {"tag": 1, "image": "b"}}
    plan = {
        "resource_changes": [
            {"address": name, "change": {"actions": how.split()} | (values if how == "update" else {})}
            for name, how in actions.items()
        ]
    }
    assert read_changes(plan).resources == (("+", "b"), ("-/+", "c"), ("-/+", "d"), ("~", "e (image)"), ("-", "f"))


def test_an_interrupt_ends_the_program_in_the_foreground_and_its_end_is_awaited(tmp_path: Path) -> None:
    script = f'trap "touch {tmp_path}/ended; exit 7" INT; kill -INT $PPID; kill -INT $$; sleep 5'
    with interrupts_for_child():
        assert subprocess.run(["/bin/sh", "-c", script], check=False).returncode == 7
    assert (tmp_path / "ended").exists()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
