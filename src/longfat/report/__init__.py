# SPDX-License-Identifier: Apache-2.0
"""The report of a study, the page of all studies and pages in the repository."""
