"""python train.py my.txt: train a text generator. The same as `minigpt train`."""

import sys

from minigpt.cli.main import train_main

if __name__ == "__main__":
    sys.exit(train_main())
