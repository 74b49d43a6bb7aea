# SPDX-License-Identifier: Apache-2.0
"""The commanding machine's side of runs on the hosts of a lab: placement, connections, merging of results.

``longfat.backends.testbed.agent`` acts on a host.
"""
