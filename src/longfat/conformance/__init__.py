# SPDX-License-Identifier: Apache-2.0
"""Shows that each congestion control of the kernel does what its paper or RFC says, with real flows in virtual time."""
