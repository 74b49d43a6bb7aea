# SPDX-License-Identifier: Apache-2.0
"""Builds, made once for each machine and kept in the cache folder: kernel, image, container image, machines' disk."""
