# SPDX-License-Identifier: Apache-2.0
"""Runs on other machines by Dask, whose workers are started for one command and end with it."""
