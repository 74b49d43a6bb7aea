# SPDX-License-Identifier: Apache-2.0
"""The code on the hosts of a lab during a run: it is sent there over SSH and leaves nothing behind.

Owns a host's state during a run: its network cards and limits, and the programs that are started. Standard library and
the laboratory's code only. Must not decide what is run: the commanding machine does (``longfat.testbed.connect``).
"""
