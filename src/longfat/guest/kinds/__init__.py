# SPDX-License-Identifier: Apache-2.0
"""Kinds of traffic in the guest, each in the module of its name; ``kind`` is their protocol."""
