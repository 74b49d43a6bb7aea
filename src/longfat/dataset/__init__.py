# SPDX-License-Identifier: Apache-2.0
"""From raw records to tidy tables: parsing, validity gates, writing and reading of Parquet files."""
