# SPDX-License-Identifier: Apache-2.0
"""Backends that execute runs, behind one protocol. A backend receives RunSpecs, never a manifest."""
