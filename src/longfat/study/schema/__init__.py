# SPDX-License-Identifier: Apache-2.0
"""Reading of YAML files by closed models, with line numbers and all problems at once. Must not know any key."""
