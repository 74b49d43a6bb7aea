# SPDX-License-Identifier: Apache-2.0
"""What each verb of the command does, in terms of the other packages; a module for each stage they need.

A verb raises or returns whether all is well; only ``longfat.cli`` exits.
"""
