# SPDX-License-Identifier: Apache-2.0
"""The report of a study, the front page of all studies, and generated pages in the repository."""
