# SPDX-License-Identifier: Apache-2.0
"""Reproduces published TCP congestion-control studies on long fat networks, with real Linux TCP."""
