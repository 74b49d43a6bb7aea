# SPDX-License-Identifier: Apache-2.0
"""Runs on other machines, by Dask: its workers are started there for one command, and end with it."""
