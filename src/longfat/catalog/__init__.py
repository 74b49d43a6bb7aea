# SPDX-License-Identifier: Apache-2.0
"""What a manifest may name: congestion controls, stack profiles, qdiscs and offloads. Plain data only."""
