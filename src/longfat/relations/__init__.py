# SPDX-License-Identifier: Apache-2.0
"""Relations: a study's claims about its runs, in one small language, and the verdicts on them.

Over a grid of runs, a metric stands in a relation to a number, a formula or another metric. docs/claims.md is the
reference of the language.
"""
