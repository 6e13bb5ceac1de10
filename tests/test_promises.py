"""The numbers that README and docs promise, made of the constants that make them true.

Each sentence is written here with the constant in the place of its number. So a constant that
changes without its sentence is found, and so is a sentence that changes without its constant.
"""

import inspect
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import h11
import pytest
from packaging.requirements import Requirement

from minigpt.config import (
    EARLY_UNTIL,
    PLAIN,
    USUAL,
    ReadingConfig,
    TrainConfig,
    count_parameters,
)
from minigpt.data import copies, counting, source
from minigpt.data.readers import apart, archive, content, epub, paragraphs, rows, xml
from minigpt.generation import continuation
from minigpt.measure import places
from minigpt.page import build
from minigpt.recipe import plan, rules, text_stats, tuning
from minigpt.recipe import texts_while_learning as samples
from minigpt.runs.folder import NEARLY, read_config
from minigpt.serve.app import BODY, CLIENTS_OF_A_TEXT
from minigpt.serve.batch import GRACE
from minigpt.serve.requests import Order
from minigpt.serve.settings import ServeConfig
from minigpt.serve.sockets import PATIENCE
from minigpt.studio.texts import planning, reading, upload
from minigpt.training import compilation, evaluation, weights

from .conftest import real_base_folder

ROOT = Path(__file__).parent.parent
MB = 1 << 20
GB = 1 << 30
NUMBERS = dict(
    enumerate("no one two three four five six seven eight nine ten eleven twelve".split())
)
NUMBERS[20] = "twenty"
PARTS = {2: "half", 8: "eighth", 10: "tenth", 20: "twentieth", 50: "fiftieth"}


def word(number: float) -> str:
    """Two: a small number in prose."""
    assert number == int(number)
    return NUMBERS[int(number)]


def part(share: float) -> str:
    """A fiftieth: a share in prose."""
    return PARTS[round(1 / share)]


def rate(width: int) -> str:
    return f"{rules.plan_learning_rate(width, is_pretrained=False):.2g}"


def needed(parameters: int, repeats_afar: bool = False) -> float:
    return rules.tokens_needed(parameters, repeats_afar)


def decay(epochs: float, is_tied: bool = True) -> float:
    return rules.plan_weight_decay(epochs, 128, is_tied)


smallest, *_, largest = rules.SIZES
head_bytes = inspect.signature(h11.Connection).parameters["max_incomplete_event_size"].default
python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"][2:]
split = rules.plan_token_split_prob(epochs=100, width=128, tokenizer="bpe")
base_parameters = count_parameters(read_config(real_base_folder()).model)

PROMISES = {
    "README.md": [
        f"You need Python {python} or newer",
        f"train.py my.txt # {word(TrainConfig.minutes)} minutes; --minutes 20 for more",
        f"how often did this token follow these {word(counting.ORDER - 1)}?",
    ],
    "docs/documents.md": [
        f"{content.MOST_TIMES} times its own size, or {content.ALWAYS_UNPACKED // MB} MB if that",
        f"size of all that an archive or a document holds | {content.MOST_UNPACKED // GB} GB |",
        f"or one part of a document | {content.MOST_WHOLE // MB} MB |",
        f"files in an archive | {archive.MOST_MEMBERS:,} |",
        f"tags or groups inside one another | {xml.MOST_NESTED:,} |",
        f"a cell of a table | {rows._LONGEST_CELL:,} characters |",
        f"time for one page of a PDF | {apart.MOST_SECONDS} seconds |",
        f"PDF or parquet file (on Linux) | {apart.MOST_MEMORY // GB} GB |",
        f"an e-book with at least {word(epub._LEAST_CHAPTERS)} chapter files",
        f"at least {word(paragraphs._LEAST_CHAPTERS)} headings of the same level",
        f"at least {paragraphs._LEAST_LENGTH:,} characters apart on average",
    ],
    "docs/talking.md": [
        f"ends after {word(ReadingConfig.silence)} hours without a message",
    ],
    "docs/studio.md": [
        f"Choose between {part(planning.MINUTES[0])} a minute and "
        f"{word(planning.MINUTES[-1] / 60)} hours.",
        f"and {word(reading._LINES)} lines *as the model sees it*",
        f"at most {TrainConfig.checkpoint_seconds:.0f} seconds of learning are lost",
        f"{upload._MOST_BYTES // 10**9} GB and {upload._MOST_FILES:,} files for a text",
        f"{word(reading.MOST_SECONDS / 60)} minutes and {reading._MOST_MEMORY // GB} GB of memory",
        f"{part(upload._LEAST_FREE / 10**9)} a gigabyte of the disk stays free",
    ],
    "docs/serve.md": [
        f"http://127.0.0.1:{ServeConfig.port};",
        f"the temperature is mostly {USUAL['temperature']}, where OpenAI's is 1",
        f"Only the length has OpenAI's default, {Order.max_tokens} tokens for a completion",
        f"unfinished texts are cut off after {word(GRACE)} seconds",
        f"A body has at most {BODY // MB} MB, headers {head_bytes >> 10} KB.",
        f"Beyond {word(CLIENTS_OF_A_TEXT)} times `--max-waiting` connections",
        f"if within {PATIENCE:.0f} to {2 * PATIENCE:.0f} seconds it has not sent",
    ],
    "docs/training.md": [
        f"takes the base if its loss is at least {1 - tuning._CLEARLY:.0%} lower.",
        f"at {part(evaluation._FINE)}s of the way",
        f"the farthest whose loss is within {NEARLY:.1%} of the lowest",
        f"is the largest of {word(len(rules.SIZES))} that passes two tests. The smallest has width "
        f"{smallest.emb_dim} and {smallest.num_layers} layers, the largest width "
        f"{largest.emb_dim} and {largest.num_layers}.",
        f"A small model needs {needed(0):,.0f} plus {(needed(1000) - needed(0)) / 1000:.1f} for "
        "each parameter",
        f"the text has a token for every {rules.PARAMETERS_PER_TOKEN:.0f} parameters",
        f"{rules.vocabulary_of_words(60_000)} tokens for 60 KB, "
        f"{rules.vocabulary_of_words(1_000_000):,} for 1 MB",
        f"gets {rules._LONG_TOKENS:,} tokens, because longer tokens let a context reach farther",
        f"is {rules.short_context('bpe')} tokens, about 300 characters, or "
        f"{2 * rules.short_context('bpe')} if the run trains on a million tokens or more",
        f"at least {text_stats._MUCH:.0%} of its characters follow {text_stats._SAME} characters "
        f"that also occurred {text_stats._NEAR + 1} to {text_stats._FAR:,} characters earlier",
        f"can train on {needed(0, repeats_afar=True) / needed(0)} times as many tokens as usual",
        f"is {rules.BATCH_SIZES[0] * rules.short_context('bpe'):,} tokens a step. It doubles while "
        f"the run would take more than {rules.MANY_STEPS:,} steps",
        f"reads at least {rules.CLEARLY_MORE} times as many tokens in the same minutes",
        f"rises for a {part(TrainConfig.warmup_ratio)} of the run",
        f"{rate(64)} at width 64, {rate(128)} at 128, {rate(256)} at 256",
        f"The limit is {rules.plan_max_epochs(128):.0f} at width 128, "
        f"{rules.plan_max_epochs(64):.0f} at width 64, and never below "
        f"{rules.plan_max_epochs(9999):.0f}.",
        f"{split:.0%} of its tokens are split into two shorter ones",
        f"is {decay(2) - decay(1):.1f} per reading, up to {decay(99, is_tied=False)}, or up to "
        f"{decay(99):.0f} with one table",
        f"The first {word(round(5 * EARLY_UNTIL))} fifths are harder.",
        f"There are {word(TrainConfig.num_evals)}. If {word(TrainConfig.num_evals)} would take "
        f"more than a {part(plan._SHARE_OF_EVALUATIONS)} of the time",
        f"and at least {rules._QUICK // 10**6} MB",
        f"over about the last {part(weights._MEMORY)} of the steps",
    ],
    "docs/platforms.md": [
        f"compiles on CUDA from {compilation._LONG:.0f} minutes or {compilation._MANY:,} steps on",
    ],
    "docs/runs.md": [
        f"together take at most a {part(1 / samples._TIMES_THE_COST)} of the time",
        f"in stretches of {copies.LEAST} or more",
        f"is part of a stretch of {copies.LEAST} characters or more",
        f"The {word(places.PLACES)} places where the two differ most follow.",
    ],
    "docs/generating.md": [
        f"| `--temperature {USUAL['temperature']}` |",
        f"| `--dry-multiplier {USUAL['dry_multiplier']:g}` |",
        f"With a `--dry-base` of {USUAL['dry_base']:g}",
        *(f'"{name}": {value},' for name, value in USUAL.items()),
        f"is sampled at temperature {PLAIN.temperature}.",
        f"at most {continuation._LONGEST_SENTENCE} tokens",
        f"trained on {word(source._ENOUGH_DOCUMENTS)} documents or more",
    ],
    "docs/page.md": [f"A page holds at most {build.LARGEST // 10**6} million parameters."],
    "docs/elsewhere.md": [
        f"| parameters | {base_parameters / 1e6:.1f} million |",
    ],
    "docs/scale.md": [f"about {TrainConfig.checkpoint_seconds:.0f} seconds of training"],
}


def plain(text: str) -> str:
    """A text without its line ends, so that a sentence may be broken anywhere."""
    return " ".join(text.split())


@pytest.mark.parametrize("page", PROMISES)
def test_a_page_promises_what_the_code_has(page: str) -> None:
    text = plain((ROOT / page).read_text(encoding="utf-8"))
    assert [promise for promise in PROMISES[page] if plain(promise) not in text] == []


# What an installation takes on disk, as it is here


def needed_by(package: str) -> set[str]:
    """The names of all packages that one, with its extras, needs; it too."""
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(package)]
    while waiting:
        needed = waiting.pop()
        for extra in {"", *needed.extras} - {e for name, e in seen if name == needed.name}:
            seen.add((needed.name, extra))
            for line in metadata.requires(needed.name) or ():
                further = Requirement(line)
                if further.marker is None or further.marker.evaluate({"extra": extra}):
                    waiting.append(further)
    return {name for name, _ in seen}


def megabytes(packages: set[str]) -> float:
    files = [file.locate() for name in packages for file in metadata.files(name) or ()]
    return sum(file.stat().st_size for file in files if file.exists()) / 1e6


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the figures are those of Linux")
def test_an_installation_takes_as_much_disk_as_is_said() -> None:
    readme = plain((ROOT / "README.md").read_text(encoding="utf-8"))
    documents = plain((ROOT / "docs/documents.md").read_text(encoding="utf-8"))
    alone = needed_by("minigpt-text")
    assert f"which take {megabytes(needed_by('minigpt-text[studio]')) / 1000:.0f} GB" in readme
    for extra in ("documents", "parquet"):
        (said,) = re.findall(rf"\[{extra}\]\" .*?(\d+) MB on disk", documents)
        size = megabytes(needed_by(f"minigpt-text[{extra}]") - alone)
        assert size == pytest.approx(float(said), rel=0.1)
