"""What a page tells of a model besides its weights: what it has read and for how long, how texts of
its own begin, and how it learned. Nothing of it names a place on the machine that made the page."""

import re
from pathlib import PurePath, PureWindowsPath
from typing import Any

from .. import UserError
from ..config import TextConfig
from ..data.dialogue import Dialogue
from ..data.readers.document import Turn, title
from ..generation.beginnings import opening_of
from ..generation.talk import read_talk
from ..runs.base import bytes_read, is_base
from ..runs.find import beginning, glass_writer
from ..runs.folder import METRICS, WEIGHTS, read_metrics, read_plan
from ..runs.read_model import FoundModel
from ..runs.state import texts_of_evaluations
from ..runs.weights import read_best
from ..system.shown import in_utf8
from ..tokenizer import Tokenizer

OPENINGS = 3
MOST_EVALUATIONS = 120  # that a page holds
LONGEST_SAMPLE = 500  # characters of each
_SHORTEST = 8  # characters of a turn
_LONGEST = 36
_TO_WRITE = 60  # tokens of a text, where there are no samples to take openings from
_TRIES = 4  # such texts
_TEMPERATURE = 0.5  # of these: they are to be ordinary
_PLAIN = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)*")
# After the end of a sentence and the quotation marks that close it, or in a new line.
_SENTENCE_ENDS = re.compile(r"(?<=[.!?…。！？])[\"'”’»」]*\s+|(?<=[。！？])|\n+")


def facts(found: FoundModel, text_name: str | None = None) -> dict[str, Any]:
    """What the model is, for the first sentence of the page; what is not known is None.

    text: what to call its text, `text_name` or the name of the file; bytes: the size of all its
    text; seconds: how long it was trained; beginning: what the training began with.
    """
    seconds = [row["seconds"] for row in _evaluations(found)]
    text = found.config.origin.text if found.config else None
    is_the_base = is_base(found.folder)
    return {
        "kind": "base" if is_the_base else "run" if found.is_run else "other",
        "text": text_name or (name_of_text(text) if text else None),
        "bytes": bytes_read() if is_the_base else _text_bytes(found, text),
        "seconds": seconds[-1] if seconds else None,
        "beginning": beginning(found),
    }


def name_of_text(text: TextConfig) -> str:
    """What to call a text: the name of its file without its folder and ending, and how many more
    there are."""
    first = title(text.files[0])
    name = in_utf8(PureWindowsPath(PurePath(first).name).stem or first)
    others = len(text.files) - 1
    return f"{name} and {others} more" if others else name


def _text_bytes(found: FoundModel, text: TextConfig | None) -> int | None:
    """The size of the text that the run was planned for."""
    try:
        planned = read_plan(found.folder)["text"]
        size = int(planned["size"])
        if text is not None and not text.validation:  # a part of the same text was set aside
            size += int(planned["validation"])
    except (ValueError, LookupError, TypeError):
        return None
    return size


# How it learned


def history(found: FoundModel) -> list[dict[str, Any]]:
    """The evaluations of a run in order: step, seconds, loss in bits per byte on the text that it
    has read and on the text set aside, and the sample of that moment ("" if there is none). Of a
    long run some in between are left out. A folder without evaluations gives none."""
    samples = texts_of_evaluations(found.folder)
    rows = {row["step"]: row for row in _evaluations(found)}
    steps = sorted(rows)
    if len(steps) > MOST_EVALUATIONS:
        last = len(steps) - 1
        kept = {round(i * last / (MOST_EVALUATIONS - 1)) for i in range(MOST_EVALUATIONS)}
        steps = [steps[i] for i in sorted(kept)]

    return [
        {
            "step": step,
            "seconds": round(rows[step]["seconds"], 1),
            "training": round(rows[step]["train_bits_per_byte"], 4),
            "validation": round(rows[step]["val_bits_per_byte"], 4),
            "sample": samples.get(step, "")[:LONGEST_SAMPLE].strip(),
        }
        for step in steps
    ]


def _evaluations(found: FoundModel) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl; of a model that was kept after a step, those up to that step."""
    rows = read_metrics(found.folder / METRICS)
    return [row for row in rows if found.step is None or row["step"] <= found.step]


# How a text begins


def openings(found: FoundModel) -> list[str]:
    """Three beginnings of texts to try, fewer if no more are found: of sentences from the samples
    of the run, the best first, or else from texts that the model writes now. Of a model that
    learned from conversations they are turns."""
    last = _latest_samples(found)
    dialogue = glass_writer(found).dialogue
    if dialogue is not None:
        found_turns = _turns_in(last, dialogue)
        if len(found_turns) < OPENINGS:
            found_turns = _turns_in([*last, *_written(found)], dialogue)
        return found_turns[:OPENINGS]

    chosen = _openings_in(last, found.tokenizer)
    if len(chosen) < OPENINGS:
        chosen = _openings_in([*last, *_written(found)], found.tokenizer)
    return chosen[:OPENINGS]


def _latest_samples(found: FoundModel) -> list[str]:
    """The later half of the samples of a run, the best and the latest first."""
    best = read_best(found.folder / WEIGHTS)
    samples = texts_of_evaluations(found.folder)
    last = list(reversed(samples.values()))[: len(samples) // 2 + 1]  # it still learned before
    if best is not None:
        last.insert(0, samples.get(round(best["step"]), ""))
    return last


def _turns_in(texts: list[str], dialogue: Dialogue) -> list[str]:
    """Short turns of those who do not usually answer, questions first, each with another first
    word, as the text writes them up to their end."""
    answerer = dialogue.most_frequent()
    turns: list[Turn] = []
    for text in texts:
        said = read_talk(dialogue, text, answerer).turns
        turns += said[:-1]  # the last one may have been cut off

    by_first_word: dict[str, str] = {}
    for speaker, text in sorted(turns, key=lambda turn: not turn.text.endswith("?")):
        is_short = _SHORTEST <= len(text) <= _LONGEST and "\n" not in text
        if speaker != answerer and is_short and "\ufffd" not in text:
            opening = dialogue.write([Turn(speaker, text)]).removesuffix(dialogue.end)
            by_first_word.setdefault(text.split()[0], opening)
    return list(by_first_word.values())


def _written(found: FoundModel) -> list[str]:
    """Texts that the model writes."""
    writer = glass_writer(found)
    return [
        writer.generate(max_new_tokens=_TO_WRITE, temperature=_TEMPERATURE, seed=seed)
        for seed in range(_TRIES)
    ]


def _openings_in(texts: list[str], tokenizer: Tokenizer) -> list[str]:
    """How the sentences of some texts begin, each with another word. First come those of ordinary
    words, which are few tokens, without marks such as quotation marks that may be left open."""
    found: list[str] = []
    for text in texts:
        found += filter(None, map(opening_of, _SENTENCE_ENDS.split(text)))

    def oddity(opening: str) -> tuple[bool, bool]:
        try:
            length = len(tokenizer.encode(opening))
        except UserError:  # a character that it does not know
            length = len(opening)
        has_rare_words = length > len(opening.split()) + 1
        return not _PLAIN.fullmatch(opening), has_rare_words

    by_first_word: dict[str, str] = {}
    for opening in sorted(found, key=oddity):  # keeps the order otherwise
        by_first_word.setdefault(opening.split()[0], opening)
    return list(by_first_word.values())
