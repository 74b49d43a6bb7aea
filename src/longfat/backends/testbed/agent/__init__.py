# SPDX-License-Identifier: Apache-2.0
"""The code on the hosts of a lab during a run: sent there over SSH, removed afterwards.

Owns the state of a host during a run: its network cards and limits, and the started programs. Uses the standard library
and the guest's code only. ``longfat.backends.testbed.connect`` chooses the runs.
"""
