# SPDX-License-Identifier: Apache-2.0
"""Machines of a lab: made and prepared (provision), connected (connect), and used for a run (agent)."""
