# SPDX-License-Identifier: Apache-2.0
"""The same scenarios on several backends, held against each other: does the virtual clock change what TCP does?"""
