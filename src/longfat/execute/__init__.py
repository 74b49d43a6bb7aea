# SPDX-License-Identifier: Apache-2.0
"""Executes a plan by a pool of threads or of other machines, so that each run ends in a record."""
