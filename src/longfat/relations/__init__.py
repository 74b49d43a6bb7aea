# SPDX-License-Identifier: Apache-2.0
"""Relations: what a study claims of its runs, in one small language, and the verdicts on it.

Over a grid of runs, a metric stands in a relation to a number, a formula or another metric. docs/relations.md is the
reference of the language.
"""
