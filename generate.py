"""python generate.py "Once upon a time": generate text. The same as `minigpt generate`."""

import sys

from minigpt.cli import main

if __name__ == "__main__":
    sys.exit(main(["generate", *sys.argv[1:]], prog="generate.py"))
