# SPDX-License-Identifier: Apache-2.0
"""Raw runs on disk: written once, checksummed, committed by atomic rename, verified when read."""
