# SPDX-License-Identifier: Apache-2.0
"""The report of a study, the page of all studies, the committed reference, and the execution of notebooks."""
