# SPDX-License-Identifier: Apache-2.0
"""Evidence: the values that claims and figures read from runs, kept in the repository so that anyone can verify them.

A row is one run with its values; rows lie in an epoch, which is all that behaves alike. docs/evidence.md is the user's
side, docs/data.md has the files.
"""
