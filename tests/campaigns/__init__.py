# SPDX-License-Identifier: Apache-2.0
"""Campaigns: the project held against kills, damage, nonsense and extremes, drawn by a seed (docs/reliability.md)."""
