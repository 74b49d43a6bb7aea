# SPDX-License-Identifier: Apache-2.0
"""The code that runs on the hosts of a lab: sent over SSH for each run, removed afterwards.

Owns the state of a host during a run: network cards, limits and started programs. Uses the standard library and the
guest's code only. ``longfat.backends.testbed.connect`` chooses the runs.
"""
