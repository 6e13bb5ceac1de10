"""Whether names stay in a text: of names after the first, the share that was there before.

python benchmarks/staying_names.py runs/tales base --reference data/tales.txt [--help]

A name is a capitalised word that does not begin a sentence and is not "I". Each model writes texts
without a prompt; the reference is cut into texts as long as these.
"""

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from measuring import MADE
from written_texts import pieces_of, spread, written

import minigpt
from minigpt.data.corpus import Corpus, whole_documents

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# Between two sentences, or before one: a full stop and its like, a line end, a quotation mark that
# opens. A full stop after a title is none.
SENTENCE_BEGINS = re.compile(r"(?:^|\n|[.!?:…]['\"’”)\]]*)[\s'\"‘“(\[*_—-]*$|['\"‘“(\[]$")
TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Capt|Col|Gen|Rev|Lt|Sgt)\.\s*$")
BEFORE = 40  # characters before a word in which the end of a sentence is looked for


def main() -> None:
    """The share of each model, and of the reference."""
    given = arguments()
    found = {}
    for model in given.models:
        writer = minigpt.load(model)
        texts = written(writer, given.texts, given.tokens, given.temperature)
        found[model] = share_that_stays(texts)
        show(model, found[model])

    if given.reference:
        documents = whole_documents(Corpus((given.reference,)).pieces())
        texts = spread([*pieces_of(writer.tokenizer, documents, given.tokens)], given.texts)
        found[str(given.reference)] = share_that_stays(texts)
        show(str(given.reference), found[str(given.reference)])

    MADE.mkdir(exist_ok=True)
    (MADE / "staying_names.json").write_text(json.dumps(found, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """Which models, and how long the texts are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", help="runs, or other models")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="a text by people")
    parser.add_argument("--texts", type=int, default=200, help="that each model writes")
    parser.add_argument("--tokens", type=int, default=150, help="of each text")
    parser.add_argument("--temperature", type=float, default=0.7)
    return parser.parse_args()


def show(name: str, share: float) -> None:
    print(
        f"{name}: {share:.0%} of the names after the first in a text were there before", flush=True
    )


def share_that_stays(texts: Sequence[str]) -> float:
    """Of all names after the first in their text, the share that was in the text before, there
    perhaps as the first word of a sentence."""
    later = 0
    stayed = 0
    for text in texts:
        before: set[str] = set()  # the words
        has_name = False
        for word, is_name in words(text):
            if is_name and has_name:
                later += 1
                stayed += word in before
            has_name = has_name or is_name
            before.add(word)
    return stayed / max(later, 1)


def words(text: str) -> Iterator[tuple[str, bool]]:
    """The words of a text, and whether each is a name there; "Tom's" is Tom."""
    for found in WORD.finditer(text):
        word = re.sub(r"['’]s$", "", found[0])
        is_capitalised = word[0].isupper() and not word.isupper()  # and neither I nor a heading
        is_speaker = re.match(r"I['’]", word) is not None  # I'm, I'll
        begins = _begins_sentence(text, found.start())
        yield word, is_capitalised and not is_speaker and not begins


def _begins_sentence(text: str, start: int) -> bool:
    before = text[max(start - BEFORE, 0) : start]
    if TITLE.search(before):
        return False
    return SENTENCE_BEGINS.search(before) is not None


if __name__ == "__main__":
    main()
