# SPDX-License-Identifier: Apache-2.0
"""The report of a study, the page of all, the committed reference, and results opened for a notebook."""
