# SPDX-License-Identifier: Apache-2.0
"""Files, locks, processes and errors: the floor on which every other package stands."""
