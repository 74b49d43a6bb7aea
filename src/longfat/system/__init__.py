# SPDX-License-Identifier: Apache-2.0
"""Errors, events, files, locks and processes, for every other package. Imports none of them."""
