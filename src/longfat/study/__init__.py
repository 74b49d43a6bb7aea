# SPDX-License-Identifier: Apache-2.0
"""The study manifest: its models, its loader and its checks. Pure: nothing here looks at the machine."""
