# SPDX-License-Identifier: Apache-2.0
"""The places a run can happen in, behind one protocol; a backend sees RunSpecs and never a manifest."""
