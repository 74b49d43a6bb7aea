# SPDX-License-Identifier: Apache-2.0
"""``python -m longfat`` is the command ``longfat``."""

from longfat.cli import main

# Worker processes import this module again under another name; they must not start the command.
if __name__ == "__main__":
    main()
