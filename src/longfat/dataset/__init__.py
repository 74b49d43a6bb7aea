# SPDX-License-Identifier: Apache-2.0
"""From raw records to tidy tables: parsing, validity gates, Parquet files, and reading them again."""
