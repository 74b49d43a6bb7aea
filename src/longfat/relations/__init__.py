# SPDX-License-Identifier: Apache-2.0
"""Relations: the language of claims, and the verdicts on them.

A relation compares a metric over a grid of runs with a number, a formula or another metric (docs/claims.md).
"""
