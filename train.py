"""python train.py my.txt: train a text generator. The same as `minigpt train`."""

import sys

from minigpt.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]], prog="train.py"))
