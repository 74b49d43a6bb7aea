# SPDX-License-Identifier: Apache-2.0
"""A shell in a guest with the network of a run; the guest's clock stands still between commands.

``session`` is the host's side. ``inside.py`` and ``loop.bash`` are sent into the guest, and are not part of the code
that executes runs.
"""
