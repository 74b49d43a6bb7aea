# SPDX-License-Identifier: Apache-2.0
"""Machines as a testbed: ``provision`` makes them, ``connect`` reaches them, ``agent`` runs on them."""
