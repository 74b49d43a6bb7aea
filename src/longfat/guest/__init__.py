# SPDX-License-Identifier: Apache-2.0
"""The code that runs next to the packets, in a guest or on a host's own kernel.

Standard library and Mininet only, Python 3.11: this folder is copied into the guest unchanged. It knows a RunSpec and
an output folder, never a manifest.
"""
