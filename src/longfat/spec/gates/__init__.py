# SPDX-License-Identifier: Apache-2.0
"""The validity gates: a run counts only if its declared settings were achieved. Traffic kinds have their own gates.

Owns the criteria of an ``invalid`` run, and the text of the reason. Each gate is a pure function of the RunSpec and the
read-back (``achieved.json``, ``flows.json``). It yields a reason with the achieved and the declared value for every
deviation, and nothing for a valid run.
"""

from __future__ import annotations

from longfat.spec.gates import behaviour, settings
from longfat.spec.gates.evidence import Evidence as Evidence
from longfat.spec.gates.evidence import Gate as Gate
from longfat.spec.gates.evidence import reasons_of as reasons_of

GATES: tuple[Gate, ...] = (
    settings.everything_was_read_back,
    settings.sysctls_hold,
    settings.offloads_hold,
    settings.mtu_holds,
    settings.rate_and_delay_hold,
    behaviour.busy_wires_carry_their_rate,
    behaviour.changing_wires_follow_their_steps,
    settings.queue_holds,
    settings.policers_hold,
    settings.pauses_hold,
    behaviour.impairment_holds,
    settings.cards_hold,
    behaviour.base_rtt_holds,
    settings.algorithm_holds,
    settings.windows_hold,
    behaviour.drops_only_where_declared,
    behaviour.memory_suffices,
    behaviour.cpu_sufficed,
    settings.captures_are_complete,
    behaviour.goodput_is_possible,
)
