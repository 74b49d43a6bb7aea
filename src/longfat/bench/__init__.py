# SPDX-License-Identifier: Apache-2.0
"""How fast the laboratory is: against another commit of itself, the machine's own kernel and simulators."""
