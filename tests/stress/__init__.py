# SPDX-License-Identifier: Apache-2.0
"""Stress tests: each round strikes once, drawn from a seed."""
