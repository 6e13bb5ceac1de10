"""python -m minigpt COMMAND ...: the same as `minigpt COMMAND ...`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
