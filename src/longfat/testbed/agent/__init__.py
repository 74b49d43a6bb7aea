# SPDX-License-Identifier: Apache-2.0
"""What runs on the hosts of a lab while a run goes on: it is sent there over SSH and leaves nothing behind.

Owns a host's state during a run: its network cards and limits, and what is started. Standard library and the
laboratory's code only. Must not decide what is run: the commanding machine says it (``longfat.testbed.connect``).
"""
