# SPDX-License-Identifier: Apache-2.0
"""Execution of a plan by a pool of threads or of other machines; each run ends in a record."""
