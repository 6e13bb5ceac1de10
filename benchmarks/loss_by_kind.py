"""The base's loss on each kind of text that it was validated on, beside what counting gives.

python benchmarks/loss_by_kind.py CORPUS.jsonl VALIDATION.jsonl [--model base] [--help]

Each line of VALIDATION has a `text` and a `kind`. Counting is the model of
minigpt/data/counting.py, of up to three million tokens from all over the corpus.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from judging import bits_per_byte, tokens_of
from measuring import MADE

from minigpt.data.batches import windows_side_by_side
from minigpt.data.corpus import Corpus, Part, encode
from minigpt.data.counting import CountingModel, fit_in_time
from minigpt.runs.find import find_model
from minigpt.tokenizer import Tokenizer

COUNTED = 12_000_000  # characters
COUNTING_SECONDS = 30.0


def main() -> None:
    """The loss of each kind."""
    given = arguments()
    found = find_model(given.model)
    context_length = found.glass.config.context_length
    lengths = found.tokenizer.byte_lengths()
    counting = counting_model(found.tokenizer, given.corpus)

    table = {}
    for kind, documents in by_kind(given.validation).items():
        tokens = tokens_of(found.tokenizer, documents)
        windows = windows_side_by_side(tokens, context_length, given.tokens)
        figures = {
            "the base": bits_per_byte(found, tokens, given.tokens),
            "counting": counting.bits_per_byte(windows, lengths),
            "bytes": sum(len(document.encode()) for document in documents),
        }
        table[kind] = figures
        print(
            f"{kind}: {figures['the base']:.3f} bits/byte, counting {figures['counting']:.3f}, "
            f"of {figures['bytes']:,} bytes",
            flush=True,
        )

    MADE.mkdir(exist_ok=True)
    (MADE / "loss_by_kind.json").write_text(json.dumps(table, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """Which texts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="what the base was trained on")
    parser.add_argument("validation", type=Path, help="lines with the fields text and kind")
    parser.add_argument("--model", default="base")
    parser.add_argument("--tokens", type=int, default=1 << 17, help="of each kind, at most")
    return parser.parse_args()


def by_kind(file: Path) -> dict[str, list[str]]:
    """The documents of each kind."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        kinds[row["kind"]].append(row["text"])
    return dict(sorted(kinds.items()))


def counting_model(tokenizer: Tokenizer, corpus: Path) -> CountingModel:
    """What counts which token follows which four, in a sample of the corpus."""
    text = Corpus((corpus,))
    lengths = text.scan.lengths
    sample = Part(sum(lengths), text, cuts=lengths).at_most(COUNTED)
    tokens = np.concatenate([piece for _, piece in encode(tokenizer, sample)])
    return fit_in_time(tokens, tokenizer.vocab_size, COUNTING_SECONDS)


if __name__ == "__main__":
    main()
