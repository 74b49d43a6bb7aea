# SPDX-License-Identifier: Apache-2.0
"""Places to execute a run, behind one protocol. A backend receives RunSpecs, never a manifest."""
