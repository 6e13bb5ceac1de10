"""Small invented files in the formats of the sources, and clones that hold them."""

import random
import subprocess
import zipfile
from pathlib import Path

STORY = (
    "The ferryman had never learned to swim, and he told nobody. Each morning he rowed the baker "
    "across with forty loaves, and each evening he rowed the empty baskets home."
)
REPLY = (
    "“You look pale,” said the baker, who noticed everything. The ferryman said that the wind "
    "was cold — and looked at the water as one looks at a dog that has bitten before."
)
END = (
    "In the third winter the river froze, and the two of them walked. It took them a quarter of "
    "the time, but neither of them would say so until the thaw had come."
)

GUTENBERG = f"""The Project Gutenberg eBook of The Ferryman

You may copy it, give it away or re-use it under the terms of the licence.

*** START OF THE PROJECT GUTENBERG EBOOK THE FERRYMAN ***

Produced by Some Volunteers

THE FERRYMAN

[Illustration: The boat]

CONTENTS

CHAPTER I

{STORY.replace("forty", "_forty_")}

    The river is wide,
 10 The river is deep,

CHAPTER II

{REPLY[:80]}
{REPLY[80:]}[12]

CHAPTER III

{END}

*** END OF THE PROJECT GUTENBERG EBOOK THE FERRYMAN ***

The licence in full.
"""

OLD_GUTENBERG = f"""The Project Gutenberg Etext of The Ferryman
*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.07.00*END*

E-text prepared by Some Volunteers

BAKER. Row faster.{{3}}

The river is wide,
The river is deep,       10

{STORY}

{REPLY}

GLOSSARY

OAR, a pole with a blade.

End of The Project Gutenberg Etext of The Ferryman
"""

EBOOK = f"""<?xml version="1.0" encoding="utf-8"?>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">
<head><title>I</title></head>
<body epub:type="bodymatter"><section epub:type="chapter"><h2>I</h2>
<p><sup>1</sup>{STORY}<a href="endnotes.xhtml" epub:type="noteref">1</a></p>
<blockquote><p><span>The river is <em>wide</em>,</span><br/><span>the river is deep.</span></p>
</blockquote><p>{REPLY}</p>
<table><tr><td epub:type="z3998:persona">Baker</td><td>Row faster.</td></tr>
<tr><td/><td>He rows.</td></tr></table>
</section></body></html>
"""
IMPRINT = EBOOK.replace("bodymatter", "frontmatter").replace("chapter", "imprint")

CNXML = f"""<document xmlns="http://cnx.rice.edu/cnxml">
<title>Ferries</title><metadata><title>Not read</title></metadata>
<content>
<section class="learning-objectives"><para>By the end you can row.</para></section>
<para>{STORY}<figure><caption>A boat.</caption></figure></para>
<list><item>Oars are long.</item><item>Rudders are <emphasis>short</emphasis>.</item></list>
<section><title>The thaw</title><para>{END}</para></section>
<section class="review-questions"><exercise><para>Who rows?</para></exercise></section>
</content><glossary><definition>Oar: a pole.</definition></glossary></document>
"""

MARKDOWN = f"""---
title: Ferries
---

import Note from "./note"

# How a *ferry* works

{STORY} See [the manual](https://example.org/manual) and `oars`.

The oars are greased first. Then run:

```sh
row --fast
```

| oar | length |
| --- | ------ |
| left | 2 |

- The left oar is
  long.
* The right oar is longer.

> {END}

![A boat](boat.png)

## References

A book on boats.
"""

RST = f"""PEP: 9999
Title: Ferries
Author: A. Ferryman

Abstract
========

{STORY} It follows :pep:`8` and `a manual <https://example.org>`_, see ``oars``.

Oars are used like this::

    row(fast=True)

.. note::

    Not read.

* The left oar
  is long.

Copyright
=========

This is in the public domain.
"""

STORYBOOK = f"""# The ferryman

##
{STORY}

##
{END}

##
* License: [CC-BY]
* Text: A. Ferryman
"""

MEDQUAD = f"""<Document><QAPairs>
<QAPair><Question>What is (are) Wet feet ?</Question><Answer>{STORY}
    - Water is cold.    - Boots are dear.</Answer></QAPair>
<QAPair><Question>Who has wet feet ?</Question><Answer></Answer></QAPair>
<QAPair><Question>What are the symptoms ?</Question><Answer>Cold toes.
The Human Phenotype Ontology provides the following list: Cold toes 90% Wet socks 50%</Answer>
</QAPair>
</QAPairs></Document>
"""

QMSUM = """{"meeting_transcripts": [
{"speaker": "Grad A", "content": "Um , the boat 's late ."},
{"speaker": "Prof B", "content": "{vocalsound} Then we wait ."}],
"general_query_list": [{"query": "Summarize the meeting.", "answer": "They waited for a boat."}],
"specific_query_list": [{"query": "Who was late?", "answer": "The boat."}]}
"""

TASKMASTER = """[{"utterances": [
{"speaker": "user", "text": "A tea, please.\\\\r"},
{"speaker": "assistant", "text": "Here you are."}]}]
"""

ACI_BENCH = """dataset,encounter_id,dialogue,note
x,1,"[doctor] hi , how is the knee ?
[patient] it 's better , but i do n't row .",The note.
"""

MTS_DIALOG = """ID,section_header,section_text,dialogue
0,GENHX,The note.,"Doctor: Does it hurt?
Guest_family: Only when he rows."
"""

SPACELOG = """[00:00:00:01]
LCC: LIFT-OFF.

[00:00:00:02]
_page : 8
CDR: The clock is running, and the [glossary:DSKY|panel] is lit.

[00:00:00:16]
CC:  Houston, Roger.
"""

NOUNS = "baker boat bridge clerk door ferryman gull harbour lamp miller oar rope sail widow".split()
VERBS = "carried counted forgot found hid kept lost painted praised sold stole wanted".split()
ADJECTIVES = (
    "angry brown clever cold crooked dull early famous grey heavy honest idle lonely lucky narrow"
    " noisy old patient polite proud quiet rusty sleepy stiff strange tall thin warm wet wooden"
).split()
PLACES = "at dawn,behind the mill,in the rain,on the hill,under the bridge,with both hands".split(
    ","
)


def sentences(seed: int, number: int = 20) -> str:
    """Sentences that no other seed makes."""
    draw = random.Random(seed).choice

    def thing() -> str:
        return f"the {draw(ADJECTIVES)} and {draw(ADJECTIVES)} {draw(NOUNS)}"

    return " ".join(
        f"{thing().capitalize()} {draw(VERBS)} {thing()} {draw(PLACES)}." for _ in range(number)
    )


def put(file: Path, text: str) -> Path:
    """Write the file and the folders above it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def put_zip(file: Path, texts: dict[str, str]) -> Path:
    """A zip file of texts."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return file


def clone(folder: Path, files: dict[str, str]) -> str:
    """A git repository with these files; the hash of its commit."""
    for name, text in files.items():
        put(folder / name, text)
    git = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t.invalid"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "A sample"]):
        subprocess.run([*git, *command], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def table(*rows: str) -> str:
    """A SOURCES.md with these rows, each under its own heading: "books | name | ..."."""
    lines = []
    for row in rows:
        kind, _, cells = row.partition(" | ")
        lines += [f"## {kind.title()} (1)", "", cells, ""]
    return "\n".join(lines)
