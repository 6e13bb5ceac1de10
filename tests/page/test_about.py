"""What a page tells of a model besides its weights."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from minigpt.config import TextConfig
from minigpt.page import about
from minigpt.page.build import build_page
from minigpt.runs.read_model import FoundModel, load_run
from minigpt.tokenizer import make_tokenizer

from .conftest import random_found, write_samples


@pytest.fixture
def run(tmp_path: Path) -> FoundModel:
    """A folder as a run's, with evaluations and samples; its weights are random."""
    rows = [
        {
            "step": step,
            "seconds": 2.0 * step,
            "done": step / 300,
            "train_loss": 1.0,
            "val_loss": 1.0,
            "tokens_per_second": 9.0,
            "train_bits_per_byte": 3 - step / 200,
            "val_bits_per_byte": 3 - step / 250,
        }
        for step in range(1, 301)
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    last = '"Oh no," he said. The old king went away. A crow sat on a tree! Then 3 men came by. '
    samples = {1: "xq xq", 300: last + "The end of it all."}
    write_samples(tmp_path, samples)
    tokenizer = make_tokenizer("char", None, list(samples.values()))
    return random_found(tokenizer, tmp_path, emb_dim=8, num_heads=1)


def test_openings_are_how_sentences_of_the_last_samples_begin(run: FoundModel) -> None:
    assert about.openings(run) == ["The old king went", "A crow sat on", "Then 3 men came"]


def test_a_model_that_writes_no_sentences_has_no_openings(tmp_path: Path) -> None:
    found = random_found(make_tokenizer("char", None, ["abc \n"]), tmp_path, emb_dim=8, num_heads=1)
    assert about.openings(found) == []


def test_the_history_of_a_long_run_is_bounded_and_keeps_both_ends(run: FoundModel) -> None:
    history = about.history(run)
    assert len(history) == about.MOST_EVALUATIONS
    first, last = history[0], history[-1]
    assert (first["step"], first["sample"]) == (1, "xq xq")
    assert (last["step"], last["seconds"], last["validation"]) == (300, 600.0, 1.8)
    assert last["sample"].startswith('"Oh no,"')


def test_the_history_of_a_step_ends_with_its_own_evaluation(run: FoundModel) -> None:
    at_step = replace(run, step=100)
    assert [row["step"] for row in about.history(at_step)] == list(range(1, 101))
    assert about.facts(at_step)["seconds"] == 200.0


def test_what_is_not_known_of_a_model_is_none(tmp_path: Path) -> None:
    found = random_found(make_tokenizer("char", None, ["ab"]), tmp_path, emb_dim=8, num_heads=1)
    unknown = dict.fromkeys(("text", "bytes", "seconds", "beginning"))
    assert about.facts(found) == {"kind": "other"} | unknown
    assert about.history(found) == []


def test_a_text_is_named_without_the_folders_of_its_machine() -> None:
    files = ("/home/ada/secret/My tales.txt", "b.txt")
    assert about.name_of_text(TextConfig(files=files)) == "My tales and 1 more"
    assert about.name_of_text(TextConfig(files=(r"C:\\Users\\ada\\tales.txt",))) == "tales"
    assert about.name_of_text(TextConfig(files=("/home/ada/letters/",))) == "letters"


def test_nothing_in_a_page_names_a_folder_of_its_machine(tiny_run: Path) -> None:
    page = build_page(load_run(tiny_run), "my")
    assert tiny_run.is_absolute() and str(tiny_run.parent) not in page


def test_the_facts_of_a_run_are_its_own(tiny_run: Path) -> None:
    facts = about.facts(load_run(tiny_run))
    assert facts["kind"] == "run" and facts["text"] == "my"
    assert facts["seconds"] > 0


def test_the_base_is_known_as_such(real_base: Path) -> None:
    facts = about.facts(load_run(real_base))
    assert facts["kind"] == "base" and facts["bytes"] > 1e7
