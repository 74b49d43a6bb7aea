# SPDX-License-Identifier: Apache-2.0
"""Runs on the hosts of a lab, as the commanding machine sees them: who they are, who does what, what they bring back.

Owns the connections and the merging of what each host recorded. What happens on a host is ``longfat.testbed.agent``.
"""
