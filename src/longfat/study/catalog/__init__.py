# SPDX-License-Identifier: Apache-2.0
"""Names that a manifest may use: congestion controls, stack profiles, kernels, qdiscs, offloads. Plain data only."""
