"""How runs are best sampled: what their texts repeat, beside the author's.

python benchmarks/sampling.py --judge FOLDER --chat FILE --teacher FOLDER [--runs FOLDER] [--help]

Of six texts (tales, plays, a diary, novels, technical notes, a chat) a model is trained, or found
in `--runs`, where a run has the name of its text. It writes texts with each of some settings, and
the author's validation text is cut into texts as long as these. Of each kind of texts there are

- repeated: words that end four in a row which stood in the text before, of 100 words
- different: different words among a hundred in a row
- names: of names after the first, how many were in the text before (staying_names.py)
- bits a byte, by a model that did not write them: a folder with a larger GPT of English
- copied: of 100 characters, how many stand in passages that are in the training text too

Figures go to benchmarks/results/sampling.json after each text.
"""

import argparse
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measuring import MADE, ROOT, run
from safetensors.numpy import load_file
from staying_names import WORD, share_that_stays
from written_texts import pieces_of, spread

import minigpt
from minigpt.config import GPTConfig
from minigpt.data.copies import find_copies
from minigpt.data.corpus import whole_documents
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.generation.writer import Writer
from minigpt.tokenizer.tokenizer_json import load_tokenizer

JUDGED = ("diary", "novels", "technical")  # .txt, in the folder of the judging texts
IN_A_ROW = 4  # words
AMONG = 100  # words

# What is compared: the run's own settings, those of a program that knows nothing of the run, and
# others, by name
SETTINGS: dict[str, dict[str, Any]] = {
    "the run's own": {},
    "temperature 0.8, no penalty": {"temperature": 0.8, "dry_multiplier": 0.0},
    "temperature 1": {"temperature": 1.0},
    "temperature 0.6, no penalty": {"temperature": 0.6, "dry_multiplier": 0.0},
}


def main() -> None:
    """Measure each text, and keep its figures."""
    given = arguments()
    teacher = Teacher(given.teacher)
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for name, text in texts_of(given).items():
        with tempfile.TemporaryDirectory() as folder:
            writer = writer_of(text, given.runs / name if given.runs else None, Path(folder), given)
            print(f"{name}:", flush=True)
            figures[name] = dict(measured(writer, teacher, given))
        MADE.mkdir(exist_ok=True)
        (MADE / "sampling.json").write_text(json.dumps(figures, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """Which texts, and how many are written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judge", type=Path, required=True, help="folder of the judging texts")
    parser.add_argument("--chat", type=Path, required=True, help="a chat, as a text")
    parser.add_argument("--teacher", type=Path, required=True, help="folder of the larger model")
    parser.add_argument("--runs", type=Path, help="folder of runs that are there already")
    parser.add_argument("--minutes", type=float, default=2, help="of each training")
    parser.add_argument("--only", nargs="+", help="names of texts")
    parser.add_argument("--texts", type=int, default=40, help="that are written with each setting")
    parser.add_argument("--tokens", type=int, default=150, help="of each text")
    parser.add_argument(
        "--settings", type=json.loads, default=SETTINGS, help="others to compare: JSON, by name"
    )
    return parser.parse_args()


def texts_of(given: argparse.Namespace) -> dict[str, Path]:
    """The six texts, by name."""
    texts = {name: ROOT / f"data/{name}.txt" for name in ("tales", "plays")}
    texts |= {name: given.judge / f"{name}.txt" for name in JUDGED}
    texts["chat"] = given.chat
    return {name: path for name, path in texts.items() if name in (given.only or texts)}


def writer_of(text: Path, found: Path | None, folder: Path, given: argparse.Namespace) -> Writer:
    """The writer of a run that is there, or of one that is trained now."""
    if found is not None and found.exists():
        return minigpt.load(found)
    run(f"python train.py '{text.resolve()}' --minutes {given.minutes} --out run", folder)
    return minigpt.load(folder / "run")


def measured(
    writer: Writer, teacher: "Teacher", given: argparse.Namespace
) -> Iterator[tuple[str, dict[str, float]]]:
    """The figures of the author, and of each setting."""
    assert writer.read_text is not None  # the text of a run
    training, validation = writer.read_text()

    pieces = pieces_of(writer.tokenizer, whole_documents(validation.pieces()), given.tokens)
    kinds = {"the author": spread([*pieces], given.texts)}
    for name, settings in given.settings.items():
        written = writer.samples(
            samples=given.texts, max_new_tokens=given.tokens, seed=1, **settings
        )
        kinds[name] = [sample.text for sample in written]

    for name, texts in kinds.items():
        copied, _ = find_copies(texts, training.pieces())
        figures = {
            "repeated": 100 * repeated(texts),
            "different": different(texts),
            "names": 100 * share_that_stays(texts),
            "bits a byte": teacher.bits_a_byte(texts),
            "copied": 100 * copied,
        }
        shown = ", ".join(f"{what} {figure:.2f}" for what, figure in figures.items())
        print(f"  {name}: {shown}", flush=True)
        yield name, figures


def repeated(texts: Sequence[str]) -> float:
    """The share of words that end some in a row which stood in their text before."""
    count = 0
    again = 0
    for text in texts:
        words = WORD.findall(text.casefold())
        seen: set[tuple[str, ...]] = set()
        for end in range(IN_A_ROW, len(words) + 1):
            passage = tuple(words[end - IN_A_ROW : end])
            again += passage in seen
            seen.add(passage)
        count += len(words)
    return again / max(count, 1)


def different(texts: Sequence[str]) -> float:
    """The mean number of different words among so many in a row; of a shorter text, by share."""
    found = []
    for text in texts:
        words = WORD.findall(text.casefold())[:AMONG]
        if len(words) >= AMONG // 2:
            found.append(AMONG * len({*words}) / len(words))
    return float(np.mean(found)) if found else math.nan


class Teacher:
    """A larger GPT of English: a folder with a tokenizer.json, and weights in some files."""

    def __init__(self, folder: Path):
        weights: dict[str, Any] = {}
        for part in sorted(folder.glob("*.safetensors")):
            weights |= load_file(part)
        weights = {name: array.astype(np.float32) for name, array in weights.items()}

        vocab_size, width = weights["token_embedding.weight"].shape
        layers = sum(name.endswith(".attention_norm.weight") for name in weights)
        config = GPTConfig(
            vocab_size, context_length=512, emb_dim=width, num_layers=layers, num_heads=8
        )
        tokenizer = load_tokenizer(folder)
        self.writer = Writer(NumpyGPT(config, weights), tokenizer, knows_documents=True)

    def bits_a_byte(self, texts: Sequence[str]) -> float:
        """Of some texts, each by itself."""
        scores = [self.writer.score(text) for text in texts]
        nats = -sum(score.log_probability for score in scores)
        return nats / math.log(2) / max(sum(len(text.encode()) for text in texts), 1)


if __name__ == "__main__":
    main()
