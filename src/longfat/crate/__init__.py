# SPDX-License-Identifier: Apache-2.0
"""A study's results as a package for an archive: a Workflow Run RO-Crate with an artifact appendix.

docs/citing.md is the user's side.
"""
