# SPDX-License-Identifier: Apache-2.0
"""The laboratory: what runs beside the packets, in the guest or on a host's own kernel.

Standard library and Mininet only, Python 3.11: this folder travels into the guest as it is.
It sees a RunSpec and an output folder, never a manifest.
"""
