"""What is dropped from talk and repaired in it: turns that say nothing, half-words, "uh"."""

import re
from collections import Counter

from .document import Document

NOTHING = re.compile(
    r"((mm|hmm?|uh|um|yeah|yep|yes|okay|ok|right|oh|so|no|huh|alright|sure|ah|and|but|well|cool"
    r"|good|great|the|i|mm-hmm|uh-huh)\b[ ,.?!-]*)*",
    re.IGNORECASE,
)
FILLER = re.compile(r",? ?\b(uh|um|mm+|hmm?|eh|uhm|er)\b(-huh|-hmm)?[,.]?(?= |$)", re.IGNORECASE)
AGAIN = re.compile(r"\b(\w+(?:'\w+)?(?: \w+(?:'\w+)?){0,2}),? \1\b")
SAID_TWICE = frozenset("that had very no bye really many long".split())
HALF_WORD = re.compile(r"(?<![\w'\u2019])(\w{1,4}) (?=(\w+))")
WORDS = frozenset(
    """a an i in on it is so to be we he no do me go as at for or of the that this they you and but
    not if by up us my his her she was has had can all one out any who how now new way too two may
    see did its our own them then there these what when with will would""".split()
)
ROUGH = 1 / 400  # fillers a character: written down as it was said
UNMARKED = 0.008  # punctuation marks a character: fewer, and sentences cannot be told apart
LEAST = 200  # characters of a talk


def clean(document: Document, dropped: Counter[str]) -> Document | None:
    """The talk without turns that say nothing; None if it is bad as a whole.

    `dropped` counts the reasons.
    """
    text = "\n".join(document.paragraphs)
    if len(re.findall(r"[.?!]", text)) < UNMARKED * len(text):
        dropped["document: speech without punctuation marks"] += 1
        return None

    rough = len(FILLER.findall(text)) > ROUGH * len(text)
    turns: list[str] = []
    for turn in document.paragraphs:
        speaker, _, said = turn.partition(": ")
        if rough:
            said = smoothed(said)
        reason = reason_against(said)
        if reason:
            dropped[reason] += 1
        elif rough and turns and turns[-1].startswith(f"{speaker}: "):
            turns[-1] += f" {said}"
        else:
            turns.append(f"{speaker}: {said}")

    if sum(map(len, turns)) < LEAST:
        dropped["document: too short"] += 1
        return None
    return Document(turns, dialogue=True)


def reason_against(said: str) -> str:
    """Why a turn is dropped, or ""."""
    found = re.findall(r"[A-Za-z']+", said)
    if not found or (len(found) < 8 and NOTHING.fullmatch(said)):
        return "turn: nothing said"
    digits = sum(character.isdigit() for character in said)
    switches = sum(word.isupper() and len(word) > 1 for word in found)
    if digits > 0.10 * len(said) or switches > 0.25 * len(found) or "*" in said:
        return "turn: numbers, switches"
    return ""


def smoothed(said: str) -> str:
    """A turn without fillers, half-words and what was said twice: "I I th think, uh, so"."""
    text = re.sub(r"(\w) - (\w)", r"\1-\2", said)
    text = FILLER.sub("", text)
    for _ in range(3):
        text = AGAIN.sub(once, text)
    text = HALF_WORD.sub(without_half, text)
    text = re.sub(r"(?<![\w'\u2019])[b-hj-z] (?=[a-z])", "", text)

    text = re.sub(r" +([,.?!;])", r"\1", " ".join(text.split())).strip(" ,")
    if said[:1].isupper() and text:
        text = text[0].upper() + text[1:]
    return text


def once(match: re.Match[str]) -> str:
    """What was said twice, once; some words may come twice."""
    return match[0] if match[1].lower() in SAID_TWICE else match[1]


def without_half(match: re.Match[str]) -> str:
    """Nothing, if the next word begins with this one, which is no word of its own."""
    half = match[1].lower()
    whole = match[2].lower()
    is_half = whole.startswith(half) and whole != half and half not in WORDS and not half.isdigit()
    return "" if is_half else match[0]
