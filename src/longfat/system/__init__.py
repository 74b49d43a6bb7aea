# SPDX-License-Identifier: Apache-2.0
"""Files, locks, processes and errors, for all other packages."""
