# SPDX-License-Identifier: Apache-2.0
"""Report cards: one algorithm against others, a row for each requirement, and the matrix of several cards."""
