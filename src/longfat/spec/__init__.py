# SPDX-License-Identifier: Apache-2.0
"""A run as it is specified, and the gates that judge whether it was achieved."""
