"""The texts that the base is judged by: where they are, how they are cut, a model's loss on them.

The base has read none of them. Five are files of a folder, `--judge`, and are no part of this
repository: diary.txt, letters.txt, children.txt, technical.txt and novels.txt, English by authors
that were kept out. The tales are in data/, Python sources are on every machine, manual pages in
German and Russian on many, and other texts are named one by one.
"""

import argparse
import gzip
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from ablation import python_sources
from numpy.typing import NDArray

from minigpt.data.batches import windows_side_by_side
from minigpt.runs.folder import WEIGHTS
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import Tokenizer
from minigpt.training.evaluation import evaluate_windows

ROOT = Path(__file__).resolve().parent.parent
JUDGING = ("diary", "letters", "children", "technical", "novels")  # .txt, in the folder
ENGLISH = ("diary", "letters", "children")  # of these, prose of one author each
MANUALS = Path("/usr/share/man")
MANUAL_PAGES = {"german": "de", "russian": "ru"}
KB = 1000
HELD_OUT = 0.1  # of a text, as of `train.py --split end`

Ids = NDArray[np.unsignedinteger]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that say where the texts are."""
    names = ", ".join(f"{name}.txt" for name in JUDGING)
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help=f"holds {names}")
    parser.add_argument("--shakespeare", type=Path, metavar="FILE", help="tinyshakespeare")
    instead = "(default: the manual pages of this machine)"
    for name in MANUAL_PAGES:
        text = f"a text in {name.capitalize()} {instead}"
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=text)


def is_there(name: str, given: argparse.Namespace) -> bool:
    """Whether the command line says where a text is, or this machine has it."""
    if name in JUDGING:
        return given.judge is not None
    if name == "shakespeare":
        return given.shakespeare is not None
    if name in MANUAL_PAGES:
        return getattr(given, name) is not None or bool(manual_pages(name))
    return True


def find_text(name: str, given: argparse.Namespace) -> str:
    """A text by its name; what is missing, and where it was expected, ends the program."""
    if name == "python":
        return python_sources()
    if name == "tales":
        return read(ROOT / "data/tales.txt")
    if name in JUDGING:
        if given.judge is None:
            raise SystemExit(f"name the folder that holds {name}.txt with --judge FOLDER")
        return read(given.judge / f"{name}.txt")

    file = getattr(given, name)
    if file is not None:
        return read(file)
    text = manual_pages(name) if name in MANUAL_PAGES else ""
    if not text:
        raise SystemExit(f"name the text with --{name} FILE")
    return text


def manual_pages(language: str) -> str:
    """The text of the manual pages of this machine in a language, without commands of roff. Pages
    that write umlauts as such commands are left out."""
    lines: list[str] = []
    for file in sorted(MANUALS.glob(f"{MANUAL_PAGES[language]}/man*/*.gz")):
        page = gzip.decompress(file.read_bytes()).decode(errors="ignore")
        if r"\(:" not in page:
            lines += [line for line in page.splitlines() if not line.startswith((".", "'"))]

    fonts_and_spaces = r"\\f(\(..|\[\w*\]|\w)|\\[&|/,]"
    return re.sub(fonts_and_spaces, "", "\n".join(lines)).replace("\\-", "-")


def read(file: Path) -> str:
    """A file's text; a file that is not there ends the program."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise SystemExit(f"cannot read {file}: {error.strerror}") from None


def cut(text: str, size: int | None) -> str:
    """The beginning of a text: at most so many bytes of UTF-8, in whole characters."""
    if size is None:
        return text
    return text.encode()[:size].decode(errors="ignore")


def split(text: str) -> tuple[str, str]:
    """The text that `train.py --split end` trains on, and its last tenth."""
    end = int(len(text) * (1 - HELD_OUT))
    return text[:end], text[end:]


def tokens_of(tokenizer: Tokenizer, documents: Iterable[str]) -> Ids:
    """The tokens of documents one after the other, each after an end of text, ``(n,)``."""
    end_of_text = [] if tokenizer.end_of_text is None else [tokenizer.end_of_text]
    ids: list[int] = []
    for document in documents:
        ids += end_of_text
        ids += tokenizer.encode(document)
    return np.array(ids, np.uint32)


def bits_per_byte(found: FoundModel, tokens: Ids, most: int = 1 << 17) -> float:
    """A model's loss on tokens ``(n,)``, in windows side by side as in training; of more than
    `most` tokens, in windows spread over them."""
    context_length = found.glass.config.context_length
    result = evaluate_windows(
        found.model,
        windows_side_by_side(tokens, context_length, most),
        torch.tensor(found.tokenizer.byte_lengths()),
        context_length=context_length,
    )
    return result.bits_per_byte


def digest(found: FoundModel) -> str:
    """Twelve hexadecimal digits that name the weights of a model."""
    return hashlib.sha256((found.folder / WEIGHTS).read_bytes()).hexdigest()[:12]
