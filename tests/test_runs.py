"""The folder of a run: what is saved comes back bit for bit, a damaged file is named, nothing is
ever half-written under its name, and reading runs no code.
"""

import ast
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor, nn

import minigpt
from minigpt import UserError
from minigpt.config import GPTConfig, TextConfig, TrainConfig
from minigpt.model import GPT
from minigpt.runs import (
    CONFIG,
    TOKENIZER,
    WEIGHTS,
    RunConfig,
    free_name,
    load_run,
    newest_run,
    replace,
    save_weights,
    write_text,
)
from minigpt.tokenizer import CharacterTokenizer

few = settings(max_examples=25, deadline=None)
INPUTS = torch.tensor([[0, 3, 1, 4, 2]])
SHAPE: dict[str, Any] = {"context_length": 8, "emb_dim": 8, "num_layers": 2, "num_heads": 2}


def write_run(folder: Path, characters: str = "abc\n", **shape: Any) -> GPT:
    """Make `folder` a run of a model with random weights, which is returned."""
    folder.mkdir(parents=True)
    tokenizer = CharacterTokenizer(characters)
    config = GPTConfig(tokenizer.vocab_size, **(SHAPE | shape))
    torch.manual_seed(0)
    model = GPT(config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    text = TextConfig(files=("a.txt", "b.txt"), tokenizer="char")
    write_text(RunConfig(config, TrainConfig(minutes=3), text).to_json(), folder / CONFIG)
    write_text(tokenizer.to_json(), folder / TOKENIZER)
    save_weights(model, folder / WEIGHTS)
    return model


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def spare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run for hypothesis, which puts every file it spoils back."""
    folder = tmp_path_factory.mktemp("runs") / "spare"
    write_run(folder)
    return folder


def change_config(folder: Path, part: str, **fields: Any) -> None:
    data = json.loads((folder / CONFIG).read_text())
    data[part] |= fields
    (folder / CONFIG).write_text(json.dumps(data))


# There and back


@pytest.mark.parametrize("architecture", ["qwen3", "gpt2"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_run_comes_back_with_the_same_logits_bit_for_bit(
    tmp_path: Path, architecture: str, tied: bool
) -> None:
    model = write_run(tmp_path / "run", architecture=architecture, tie_embeddings=tied)
    loaded = load_run(tmp_path / "run")
    assert torch.equal(loaded.model(INPUTS), model(INPUTS))
    assert loaded.model.config == loaded.config.model == model.config
    assert (loaded.model.head.weight is loaded.model.token_embedding.weight) == tied
    assert not loaded.model.training
    assert loaded.tokenizer.decode([2, 0, 1]) == "cab"


def test_the_config_comes_back_as_it_was(run: Path) -> None:
    config = load_run(run).config
    assert config.training == TrainConfig(minutes=3)
    assert config.text == TextConfig(files=("a.txt", "b.txt"), tokenizer="char")


@pytest.mark.parametrize("tied", [True, False])
def test_a_tied_head_is_stored_once(tmp_path: Path, tied: bool) -> None:
    model = write_run(tmp_path / "run", tie_embeddings=tied)
    stored = load_file(tmp_path / "run" / WEIGHTS)
    assert set(stored) == {name for name, _ in model.named_parameters()}
    assert ("head.weight" in stored) != tied


# What cannot be loaded is named


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such run: .*nowhere"):
        load_run(tmp_path / "nowhere")


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, TOKENIZER])
@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_missing_or_empty_file_is_named(
    run: Path, name: str, spoil: Callable[[Path], Any]
) -> None:
    spoil(run / name)
    with pytest.raises(UserError, match=name):
        load_run(run)


@pytest.mark.parametrize(
    "shape",
    [{"hidden_dim": 7}, {"num_layers": 3}, {"architecture": "gpt2"}, {"tie_embeddings": False}],
    ids=str,
)
def test_weights_of_another_shape_are_refused(
    run: Path, tmp_path: Path, shape: dict[str, Any]
) -> None:
    write_run(tmp_path / "other", **shape)
    (tmp_path / "other" / WEIGHTS).replace(run / WEIGHTS)
    with pytest.raises(UserError, match=f"{WEIGHTS} does not fit {CONFIG}: "):
        load_run(run)


def test_weights_of_another_type_are_refused(run: Path) -> None:
    """One damaged byte makes F32 I32, which would load as wild numbers."""
    data = (run / WEIGHTS).read_bytes()
    (run / WEIGHTS).write_bytes(data.replace(b'"dtype":"F32"', b'"dtype":"I32"', 1))
    with pytest.raises(UserError, match=WEIGHTS):
        load_run(run)


@given(data=st.data())
@few
def test_truncated_weights_are_refused(spare: Path, data: st.DataObject) -> None:
    whole = (spare / WEIGHTS).read_bytes()
    try:
        (spare / WEIGHTS).write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        with pytest.raises(UserError, match=WEIGHTS):
            load_run(spare)
    finally:
        (spare / WEIGHTS).write_bytes(whole)


@given(name=st.sampled_from([CONFIG, WEIGHTS, TOKENIZER]), data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_flipped_byte_is_refused_by_name_or_does_no_harm(
    spare: Path, name: str, data: st.DataObject
) -> None:
    """No checksum tells a number from another one; but nothing except UserError comes out."""
    whole = bytearray((spare / name).read_bytes())
    original = bytes(whole)
    end = 8 + int.from_bytes(whole[:8], "little") if name == WEIGHTS else len(whole)
    place, flip = data.draw(st.integers(0, end - 1)), data.draw(st.integers(1, 255))
    whole[place] ^= flip
    try:
        (spare / name).write_bytes(whole)
        assert load_run(spare).model(INPUTS).shape[:2] == INPUTS.shape
    except UserError as error:
        assert "config.json" in str(error) or name in str(error)
    finally:
        (spare / name).write_bytes(original)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "damaged or not a run's"),
        ("[1, 2]", "damaged or not a run's"),
        ("{}", "damaged or not a run's"),
        ("[" * 100_000, "damaged or not a run's"),
        ('{"model": [], "training": {}, "text": {}}', "GPTConfig: expected an object, got list"),
        ('{"model": {}, "training": {}, "text": {}}', "GPTConfig: .*vocab_size"),
    ],
    ids=["half", "list", "empty", "deep", "no object", "no model"],
)
def test_a_damaged_config_is_named(run: Path, text: str, words: str) -> None:
    (run / CONFIG).write_text(text)
    with pytest.raises(UserError, match=f"{CONFIG}.*{words}"):
        load_run(run)


@pytest.mark.parametrize(
    ("part", "fields", "words"),
    [
        ("model", {"colour": 1}, "GPTConfig: unknown field 'colour'"),
        ("model", {"num_layers": "2"}, "GPTConfig: num_layers must be a whole number, got '2'"),
        ("model", {"tie_embeddings": 1}, "GPTConfig: tie_embeddings must be true or false, got 1"),
        (
            "model",
            {"architecture": "llama"},
            "GPTConfig: architecture must be one of modern, gpt2, got 'llama'",
        ),
        ("model", {"num_heads": 3}, "emb_dim must be a multiple"),
        ("model", {"dropout": float("nan")}, "dropout must be .* got nan"),
        ("training", {"minutes": True}, "TrainConfig: minutes must be a number, got True"),
        ("training", {"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ("text", {"files": [1]}, r"TextConfig: files must be a list of texts, got \[1\]"),
        (
            "text",
            {"vocab_size": 1.5},
            "TextConfig: vocab_size must be a whole number or nothing, got 1.5",
        ),
    ],
    ids=str,
)
def test_a_field_that_cannot_be_is_named(
    run: Path, part: str, fields: dict[str, Any], words: str
) -> None:
    change_config(run, part, **fields)
    with pytest.raises(UserError, match=f"{CONFIG}: {words}"):
        load_run(run)


def test_a_tokenizer_of_another_size_is_refused(run: Path) -> None:
    write_text(CharacterTokenizer("abcd\n").to_json(), run / TOKENIZER)
    with pytest.raises(UserError, match=f"{TOKENIZER} has 6 tokens .* vocab_size 5"):
        load_run(run)


# Writing, whole or not at all


def test_a_file_is_seen_old_or_new_but_never_half_written(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write(new: Path) -> None:
        new.write_text("half")
        assert path.read_text() == "old"
        new.write_text("half, and whole")
        assert path.read_text() == "old"

    replace(path, write)
    assert path.read_text() == "half, and whole"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=repr)
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write(new: Path) -> None:
        new.write_text("half")
        raise error

    with pytest.raises(type(error)):
        replace(path, write)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_weights_that_cannot_be_written_leave_the_run_as_it_was(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load_run(run).model

    def half(tensors: dict[str, Tensor], new: Path, *rest: object) -> None:
        new.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("minigpt.runs.save_file", half)
    with pytest.raises(OSError, match="disk full"):
        save_weights(GPT(before.config), run / WEIGHTS)
    assert torch.equal(load_run(run).model(INPUTS), before(INPUTS))
    assert {file.name for file in run.iterdir()} == {CONFIG, WEIGHTS, TOKENIZER}


# Finding runs


def test_the_newest_run_is_the_one_whose_weights_were_written_last(tmp_path: Path) -> None:
    for i, name in enumerate("bca"):
        write_run(tmp_path / name)
        os.utime(tmp_path / name / WEIGHTS, (1000 + i, 1000 + i))
    os.utime(tmp_path / "b" / CONFIG, (9999, 9999))
    assert newest_run(tmp_path) == tmp_path / "a"
    os.utime(tmp_path / "c" / WEIGHTS, (5000, 5000))
    assert newest_run(tmp_path) == tmp_path / "c"


def test_half_a_run_is_not_the_newest(tmp_path: Path) -> None:
    write_run(tmp_path / "whole")
    os.utime(tmp_path / "whole" / WEIGHTS, (1000, 1000))
    for name, missing in (("without-config", CONFIG), ("without-weights", WEIGHTS)):
        write_run(tmp_path / name)
        (tmp_path / name / missing).unlink()
    (tmp_path / "a file").write_text("")
    assert newest_run(tmp_path) == tmp_path / "whole"


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_no_run_at_all_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"no run in .*/ yet; train one first"):
        newest_run(tmp_path / name)


def test_a_new_run_gets_the_first_free_name(tmp_path: Path) -> None:
    names = ["fox", "fox-2", "fox-3"]
    for name in names:
        assert free_name("fox", tmp_path) == tmp_path / name
        (tmp_path / name).mkdir()
    (tmp_path / "fox-2").rmdir()
    assert free_name("fox", tmp_path) == tmp_path / "fox-2"


# Data, never code


def test_nothing_in_the_package_unpickles_or_runs_what_it_reads() -> None:
    forbidden = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
    calls = {"eval", "exec", "torch.load", "torch.save", "torch.jit.load", "np.load", "np.save"}
    files = list(Path(minigpt.__file__).parent.rglob("*.py"))
    assert len(files) > 20
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not {alias.name for alias in node.names} & forbidden, file
            if isinstance(node, ast.ImportFrom):
                assert node.module not in forbidden, file
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in calls, file
