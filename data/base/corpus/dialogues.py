"""Readers of talk: meetings, orders in a coffee bar, visits to a doctor, flights to the moon."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

from .document import Document, one_line

FLYING = {
    "CC": "Capcom",
    "CAPCOM": "Capcom",
    "CDR": "Commander",
    "CMP": "Command Module Pilot",
    "LMP": "Lunar Module Pilot",
    "P": "Pilot",
    "C": "Command Pilot",
    "LCC": "Launch Control",
}


def read_qmsum(file: Path) -> Iterator[Document]:
    """A meeting, then the questions that were asked about it, with their answers."""
    meeting = json.loads(file.read_text(encoding="utf-8"))
    turns = [
        turn(said["speaker"], joined(re.sub(r"\{[^{}]*\}", "", said["content"])))
        for said in meeting["meeting_transcripts"]
    ]
    yield Document(turns, dialogue=True)

    asked = meeting["general_query_list"] + meeting["specific_query_list"]
    pairs = [text for pair in asked for text in (pair["query"], pair["answer"])]
    yield Document([one_line(text) for text in pairs])


def read_taskmaster(file: Path) -> Iterator[Document]:
    """Each conversation of a file."""
    for conversation in json.loads(file.read_text(encoding="utf-8")):
        said = conversation["utterances"]
        turns = [turn(one["speaker"].title(), one["text"].replace("\\r", "")) for one in said]
        yield Document(turns, dialogue=True)


def read_aci_bench(file: Path) -> Iterator[Document]:
    """Visits to a doctor, written down word by word with spaces before the punctuation marks."""
    for row in csv_rows(file):
        turns = re.findall(r"\[(\w+)\]([^\[]*)", row["dialogue"])
        yield Document([turn(name.title(), joined(said)) for name, said in turns], dialogue=True)


def joined(tokens: str) -> str:
    """A text without the spaces before punctuation marks and endings: "it 's here ." """
    text = re.sub(r" ([.,?!;:%])", r"\1", one_line(tokens))
    return re.sub(r" (n't|'\w+)\b", r"\1", text)


def read_mts_dialog(file: Path) -> Iterator[Document]:
    """Short talks of doctors and patients."""
    for row in csv_rows(file):
        lines = [line.partition(":") for line in row["dialogue"].split("\n") if ":" in line]
        turns = [turn(name.replace("_", " ").strip(), said) for name, _, said in lines]
        yield Document(turns, dialogue=True)


def csv_rows(file: Path) -> Iterator[dict[str, str]]:
    """The rows that have a dialogue."""
    with file.open(encoding="utf-8", errors="replace", newline="") as lines:
        yield from (row for row in csv.DictReader(lines) if row.get("dialogue"))


def read_spacelog(file: Path) -> Iterator[Document]:
    """The radio of a space flight: blocks of a time and what was said then."""
    text = file.read_text(encoding="utf-8", errors="replace")
    text = re.sub(r"</?\w+>", "", text)
    text = re.sub(r"\[(?:glossary|time|note):([^\]|]*)[^\]]*\]", r"\1", text)
    said = re.findall(r"^([A-Z][A-Z0-9_]{0,11}): *(.*(?:\n[^\[_\n].*)*)", text, flags=re.MULTILINE)
    turns = [turn(FLYING.get(name, name.title()), words) for name, words in said]
    yield Document(turns, dialogue=True)


def turn(speaker: str, said: str) -> str:
    """A paragraph of a dialogue."""
    return f"{one_line(speaker)}: {one_line(said)}"
