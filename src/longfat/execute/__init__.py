# SPDX-License-Identifier: Apache-2.0
"""Executes a plan: spreads its runs over worker processes and sees that each ends in a record."""
