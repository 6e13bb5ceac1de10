"""Makes the base from a run of training: python data/base/pack.py runs/NAME [--out data/base]

It writes model.safetensors (float16), tokenizer.json and config.json. The config tells nothing of
the texts; SOURCES.md does.
"""

import argparse
import sys
from pathlib import Path

from minigpt import UserError
from minigpt.runs.base import LARGEST, write_base
from minigpt.runs.find import full_name


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the base from a run of training.")
    parser.add_argument("run", help="the run, of a GPT with a tokenizer of minigpt's own")
    here = Path(__file__).parent
    parser.add_argument("--out", type=Path, default=here, help=f"the folder (default: {here})")
    read = "megabytes of text that it has read (default: the whole text of the run)"
    parser.add_argument("--read", type=float, metavar="MB", help=read)
    given = parser.parse_args()

    size_read = None if given.read is None else round(given.read * 1e6)
    try:
        size = write_base(Path(full_name(given.run)), given.out, size_read)
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"{given.out}: {size:,} bytes, of {LARGEST:,} at most")


if __name__ == "__main__":
    main()
