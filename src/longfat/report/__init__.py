# SPDX-License-Identifier: Apache-2.0
"""The report of a study, the page of all studies, pages in the repository, and the committed reference."""
