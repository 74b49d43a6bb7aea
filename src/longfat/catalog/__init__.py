# SPDX-License-Identifier: Apache-2.0
"""The names that a manifest may use: congestion controls, stack profiles, qdiscs and offloads. Plain data only."""
