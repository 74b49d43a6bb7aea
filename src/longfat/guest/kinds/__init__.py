# SPDX-License-Identifier: Apache-2.0
"""Kinds of traffic beside the packets, each in the module of its name. ``kind`` has what they have in common."""
