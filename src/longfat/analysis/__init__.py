# SPDX-License-Identifier: Apache-2.0
"""From the dataset to metrics, verdicts, figures and the report."""
