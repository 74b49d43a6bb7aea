# SPDX-License-Identifier: Apache-2.0
"""Runs on the hosts of a lab, as the commanding machine sees them: their names, their roles, their results.

Owns the connections and the merging of the hosts' records. ``longfat.testbed.agent`` acts on a host.
"""
