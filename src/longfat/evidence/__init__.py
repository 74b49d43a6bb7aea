# SPDX-License-Identifier: Apache-2.0
"""Evidence: the values that claims and figures read from runs, kept in the repository so that anyone can verify them.

A row is one run with its values. Rows belong to a baseline: a set of kernels, images and guest code that behave the
same. docs/evidence.md describes it for users.
"""
