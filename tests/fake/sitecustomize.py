# SPDX-License-Identifier: Apache-2.0
"""Registers the backend ``fake`` in every Python process that has this folder in PYTHONPATH."""

import fake_backend  # noqa: F401
