# SPDX-License-Identifier: Apache-2.0
"""Runs as data: RunSpecs, the networks that they describe, and the gates that decide whether a run is valid."""
