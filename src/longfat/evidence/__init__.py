# SPDX-License-Identifier: Apache-2.0
"""Evidence: the values of runs that claims and figures use, in the repository so that anyone can verify them.

A row is one run with its values. Rows belong to a baseline: a set of kernels, images and guest code with the same
behaviour. docs/evidence.md describes it for users.
"""
