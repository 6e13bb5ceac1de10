"""python generate.py "Once upon a time": generate text. The same as `minigpt generate`."""

import sys

from minigpt.cli.main import generate_main

if __name__ == "__main__":
    sys.exit(generate_main())
