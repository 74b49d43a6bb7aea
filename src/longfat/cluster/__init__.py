# SPDX-License-Identifier: Apache-2.0
"""Runs on machines that somebody else shares out: one protocol, a module for each kind of cluster, no scheduler."""
