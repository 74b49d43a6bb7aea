# SPDX-License-Identifier: Apache-2.0
"""Names that a manifest may use: congestion controls, host profiles, kernels, qdiscs, offloads. Plain data only."""
