# SPDX-License-Identifier: Apache-2.0
"""Packages of a study's results for archives: a Workflow Run RO-Crate with an artifact appendix (docs/data.md)."""
