# SPDX-License-Identifier: Apache-2.0
"""Builds, made once per machine and kept in the cache folder: kernels, userland image, container image, disk."""
