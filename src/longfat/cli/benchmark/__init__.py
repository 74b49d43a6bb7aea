# SPDX-License-Identifier: Apache-2.0
"""The speed of runs, next to the machine's own kernel and simulators."""
