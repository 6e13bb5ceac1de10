"""The folder of a run: what is saved comes back bit for bit, a damaged file is named, nothing is
ever half-written under its name, nothing of anybody's is overwritten, and reading runs no code.
"""

import ast
import contextlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import minigpt
from minigpt import UserError
from minigpt.config import GPTConfig, TextConfig, TrainConfig
from minigpt.data.origin import Origin
from minigpt.model import GPT
from minigpt.recipe.beginning import model_to_begin_with
from minigpt.runs.begin import check_free, is_untrained, locked, new_folder, remove_untrained
from minigpt.runs.folder import (
    CHECKPOINT,
    CONFIG,
    FIRST,
    JOB,
    JOURNAL,
    KEPT,
    LAST,
    LOCK,
    METRICS,
    PAGE,
    PLAN,
    STATE,
    TOKENIZER,
    WEIGHTS,
    RunConfig,
    read_metrics,
)
from minigpt.runs.journal import Journal
from minigpt.runs.listing import Run, free_name, newest_run, runs_by_training
from minigpt.runs.read_model import load_run
from minigpt.runs.weights import read_best, save_weights
from minigpt.system.atomic import replace, unfinished_name, write_text
from minigpt.tokenizer import CharacterTokenizer

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
    write_text(RunConfig(config, TrainConfig(minutes=3), Origin(text)).to_json(), folder / CONFIG)
    write_text(tokenizer.to_json(), folder / TOKENIZER)
    save_weights(model, folder / WEIGHTS, {"val_loss": 1.0, "val_bits_per_byte": 2.0, "step": 3})
    return model


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path / "run")
    return tmp_path / "run"


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
    assert loaded.config.training == TrainConfig(minutes=3)
    assert loaded.config.text == TextConfig(files=("a.txt", "b.txt"), tokenizer="char")
    assert (loaded.model.head.weight is loaded.model.token_embedding.weight) == tied
    assert loaded.tokenizer.decode([2, 0, 1]) == "cab"
    stored = load_file(tmp_path / "run" / WEIGHTS)  # a tied head is stored once
    assert set(stored) == {name for name, _ in model.named_parameters()}


def test_weights_know_how_good_they_were(run: Path) -> None:
    best = {"val_loss": 2.5, "val_bits_per_byte": float("inf"), "step": 7}
    model = load_run(run).model
    save_weights(model, run / WEIGHTS)
    assert read_best(run / WEIGHTS) is None
    save_weights(model, run / WEIGHTS, best)
    assert read_best(run / WEIGHTS) == best
    (run / WEIGHTS).write_bytes(b"damaged")
    assert read_best(run / WEIGHTS) is read_best(run / "nowhere") is None


# What cannot be loaded is named


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, TOKENIZER])
def test_a_missing_or_empty_file_is_named(run: Path, name: str) -> None:
    for spoil in (lambda path: path.write_bytes(b""), Path.unlink):
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


def test_a_config_that_cannot_be_is_named(run: Path) -> None:
    data = json.loads((run / CONFIG).read_text())
    data["model"]["num_layers"] = "2"
    (run / CONFIG).write_text(json.dumps(data))
    with pytest.raises(UserError, match=rf"^{run / CONFIG}: .*num_layers.*'2'"):
        load_run(run)
    for text in ("[1, 2]", "[" * 100_000, '{"model": 1}'):
        (run / CONFIG).write_text(text)
        with pytest.raises(UserError, match=f"{CONFIG} is damaged or not a run's$"):
            load_run(run)


def test_a_run_of_another_version_is_to_be_trained_again(run: Path) -> None:
    """The first version wrote no format, and its fields had other names."""
    data = json.loads((run / CONFIG).read_text())
    for change in ({"format": None}, {"format": 1}, {"format": 10**9}):
        (run / CONFIG).write_text(json.dumps(data | change))
        with pytest.raises(UserError, match=f"{CONFIG}: .*another version.*; train again$"):
            load_run(run)


def test_a_tokenizer_of_another_size_is_refused(run: Path) -> None:
    write_text(CharacterTokenizer("abcd\n").to_json(), run / TOKENIZER)
    with pytest.raises(UserError, match=f"{TOKENIZER} has 6 tokens .* vocab_size 5"):
        load_run(run)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_training_does_not_start_from_weights_that_are_not_finite(run: Path, number: float) -> None:
    model = load_run(run).model
    nn.init.constant_(model.token_embedding.weight, number)
    save_weights(model, run / WEIGHTS)
    with pytest.raises(UserError, match=f"^{run} is damaged: .*not finite"):
        model_to_begin_with(str(run))


def test_a_run_that_is_continued_after_its_end_is_finished_when_it_ends_again(run: Path) -> None:
    names = "step seconds train_loss train_bits_per_byte val_loss val_bits_per_byte".split()
    row = dict.fromkeys([*names, "tokens_per_second"], 1.5)
    rows: list[dict[str, float]] = []
    for done in (0.5, 1.0, 0.75, 1.0):
        rows.append(row | {"done": done})
        (run / METRICS).write_text("".join(json.dumps(r) + "\n" for r in rows))
        assert Run(run).about()["finished"] == (done == 1.0)


@pytest.mark.parametrize("line", ['{"step": 2, "sec', "[1, 2]", "", "}", '{"step": 2}'], ids=repr)
def test_a_line_that_is_no_row_of_metrics_is_left_out(tmp_path: Path, line: str) -> None:
    names = "step seconds train_loss train_bits_per_byte val_loss val_bits_per_byte".split()
    row = dict.fromkeys([*names, "tokens_per_second", "done"], 1.5)
    lines = [json.dumps(row), line, json.dumps(row | {"val_loss": None}), json.dumps(row)]
    (tmp_path / METRICS).write_text("\n".join(lines))
    assert read_metrics(tmp_path / METRICS) == [row, row]
    assert read_metrics(tmp_path / "nowhere") == []


# Writing, whole or not at all


@pytest.mark.parametrize("error", [None, OSError("disk full"), KeyboardInterrupt()], ids=repr)
def test_a_file_is_the_old_one_until_all_of_the_new_one_is_written(
    tmp_path: Path, error: BaseException | None
) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write(new: Path) -> None:
        new.write_text("new")
        assert path.read_text() == "old"
        if error:
            raise error

    with pytest.raises(type(error)) if error else contextlib.nullcontext():
        replace(path, write)
    assert path.read_text() == ("old" if error else "new")
    assert list(tmp_path.iterdir()) == [path]


# What may be written where


def fill(out: Path) -> None:
    with new_folder(out) as folder:
        (folder / "file.txt").write_text("new")


@pytest.mark.parametrize("name", [WEIGHTS, ".hidden", "folder/x", PLAN])
def test_a_folder_that_holds_anything_is_not_written_to(tmp_path: Path, name: str) -> None:
    (tmp_path / "out" / name).parent.mkdir(parents=True)
    (tmp_path / "out" / name).write_text("somebody's")
    with pytest.raises(UserError, match=r"out exists and is not an empty folder; .*--out"):
        fill(tmp_path / "out")
    assert [f for f in tmp_path.rglob("*") if f.is_file()] == [tmp_path / "out" / name]
    assert (tmp_path / "out" / name).read_text() == "somebody's"


def test_a_run_a_file_and_a_broken_link_are_not_written_to(run: Path, tmp_path: Path) -> None:
    (run / CHECKPOINT).mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    places = {run: "holds a run; .*--resume", run / CONFIG: "exists", tmp_path / "link": "exists"}
    for place, words in places.items():
        with pytest.raises(UserError, match=words):
            check_free(place)


@pytest.mark.parametrize("more", ["", "my notes.txt", METRICS, WEIGHTS, "kept/1.safetensors"])
def test_only_what_a_killed_start_left_is_removed(run: Path, more: str) -> None:
    """Not even the same four files, if their weights are those of an evaluation."""
    write_text("{}", run / PLAN)
    if more != WEIGHTS:
        beginning = [CONFIG, PLAN, TOKENIZER, WEIGHTS]
        save_weights(load_run(run).model, run / WEIGHTS, begun_with=beginning)
    (run / KEPT).mkdir()
    write_text("before training", run / KEPT / FIRST)
    if more not in ("", WEIGHTS):
        write_text("mine", run / more)
    held = {file.name: file.read_bytes() for file in run.rglob("*.*") if file.name != LOCK}
    if not more:
        check_free(run)
        assert not run.exists()
        return
    with pytest.raises(UserError, match="is not an empty folder"):
        check_free(run)
    left = {file.name: file.read_bytes() for file in run.rglob("*.*") if file.name != LOCK}
    assert left == held


@pytest.mark.parametrize(
    "moved", [[], [WEIGHTS], [TOKENIZER], [CONFIG, TOKENIZER, WEIGHTS]], ids=str
)
def test_what_a_start_left_that_was_killed_while_its_files_were_made_is_removed(
    run: Path, moved: list[str]
) -> None:
    save_weights(load_run(run).model, run / WEIGHTS, begun_with=[CONFIG, TOKENIZER, WEIGHTS])
    building = run / (".new-" + 8 * "01ab")
    building.mkdir()
    for name in {CONFIG, TOKENIZER, WEIGHTS} - {*moved}:
        (run / name).rename(building / name)
    (run / JOURNAL).mkdir()
    write_text("{}", run / JOURNAL / JOB)  # the studio made the folder before
    check_free(run)
    assert [*run.iterdir()] == [run / JOURNAL] and (run / JOURNAL / JOB).exists()


def test_of_a_start_that_came_no_further_than_its_journal_nothing_stays(tmp_path: Path) -> None:
    for name in ("killed", "awaited", "empty"):
        (tmp_path / name).mkdir()
    for name in ("killed", "awaited"):
        with Journal(tmp_path / name):
            pass
    write_text("{}", tmp_path / "awaited" / JOURNAL / JOB)  # the studio made the folder before
    for name in ("killed", "awaited", "empty"):
        check_free(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["awaited", "empty"]
    assert (tmp_path / "awaited" / JOURNAL / STATE).exists()


def test_a_start_that_was_killed_before_it_had_weights_leaves_what_it_found(run: Path) -> None:
    """Nothing has moved yet, so all that is beside is somebody's; not even weights which are as
    those of a beginning count if others are where they belong."""
    building = run / (".new-" + 8 * "01ab")
    building.mkdir()
    model = load_run(run).model
    with pytest.raises(UserError, match="is not an empty folder"):
        check_free(run)
    save_weights(model, building / WEIGHTS, begun_with=[CONFIG, TOKENIZER, WEIGHTS])
    with pytest.raises(UserError, match="is not an empty folder"):
        check_free(run)
    assert load_run(run)


def test_a_file_that_cannot_be_written_is_called_by_its_own_name(tmp_path: Path) -> None:
    """And not by that which it has until it is whole."""
    page = tmp_path / "nowhere" / "page.html"
    with pytest.raises(FileNotFoundError) as failed:
        write_text("a page", page)
    assert failed.value.filename == str(page)


@pytest.mark.parametrize("place", ["new", "a/b/new", "empty", "link"])
def test_a_new_or_an_empty_folder_is_filled(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    fill(tmp_path / place)
    assert [f.name for f in (tmp_path / place).iterdir()] == ["file.txt"]
    assert (tmp_path / place / "file.txt").read_text() == "new"
    assert not list(tmp_path.rglob(".new-*"))


@pytest.mark.parametrize("place", ["a/b", "empty"])
@pytest.mark.parametrize("error", [OSError(28, "disk full"), UserError("x"), KeyboardInterrupt()])
def test_what_fails_on_the_way_leaves_nothing(
    tmp_path: Path, place: str, error: BaseException
) -> None:
    (tmp_path / "empty").mkdir()
    with (
        pytest.raises(UserError if isinstance(error, OSError) else type(error)),
        new_folder(tmp_path / place) as folder,
    ):
        (folder / "half").write_text("")
        raise error
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


def test_a_full_disk_is_told_in_plain_words(run: Path, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="Windows limits no files")
    model, limits = load_run(run).model, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        words = f"^cannot write {tmp_path}/out: File too large$"
        with pytest.raises(UserError, match=words), new_folder(tmp_path / "out") as folder:
            save_weights(model, folder / WEIGHTS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_what_another_process_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"), new_folder(tmp_path / "out") as folder:
        (folder / "file.txt").write_text("slower")
        fill(tmp_path / "out")
    assert (tmp_path / "out/file.txt").read_text() == "new"
    with pytest.raises(UserError, match=r"cannot write .*file.txt/out"):
        fill(tmp_path / "out/file.txt/out")


def test_a_run_is_locked_for_one_at_a_time(run: Path) -> None:
    with locked(run), pytest.raises(UserError, match=f"another .* in {run}; "), locked(run):
        pass
    with locked(run):
        pass


def test_several_threads_write_one_file_at_once(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    texts = [character * 50_000 for character in "abcd"]

    def write_often(text: str) -> None:
        for _ in range(25):
            write_text(text, file)

    with ThreadPoolExecutor(len(texts)) as threads:
        for writing in [threads.submit(write_often, text) for text in texts]:
            writing.result()
    assert file.read_text() in texts and [*tmp_path.iterdir()] == [file]


def test_what_killed_processes_left_unfinished_is_gone_when_a_run_is_locked(run: Path) -> None:
    """Of a page and of the journal, which others write without the lock, only what is old."""
    names = ("checkpoint/last.safetensors", "kept/5.safetensors", CONFIG, PAGE, "journal/job.json")
    left = []
    for name in names:
        file = run / name
        file.parent.mkdir(exist_ok=True)
        left.append(file.with_name(unfinished_name(file.name)))
        left[-1].touch()
    with locked(run):
        assert [file.exists() for file in left] == [False, False, False, True, True]

    for file in left[3:]:
        os.utime(file, (1000, 1000))
    (run / ".new-notes.txt").touch()  # somebody else's
    with locked(run):
        assert not any(file.exists() for file in left) and (run / ".new-notes.txt").exists()


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
    for runs in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(UserError, match=r"no run in .*/ yet; train one first"):
            newest_run(runs)
    write_run(tmp_path / "whole")
    os.utime(tmp_path / "whole" / WEIGHTS, (1000, 1000))
    for name, missing in (("without-config", CONFIG), ("without-weights", WEIGHTS)):
        write_run(tmp_path / name)
        (tmp_path / name / missing).unlink()
    (tmp_path / "a file").write_text("")
    write_run(tmp_path / ".new-unfinished")
    assert newest_run(tmp_path) == tmp_path / "whole"


def test_a_checkpoint_that_goes_while_runs_are_listed_is_left_out(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / CHECKPOINT).mkdir()
    (run / CHECKPOINT / LAST).touch()
    stat = Path.stat

    def look_and_replace(path: Path, **how: Any) -> os.stat_result:
        found = stat(path, **how)
        if path.name == LAST:
            path.unlink()
        return found

    monkeypatch.setattr(Path, "stat", look_and_replace)
    assert runs_by_training(run.parent) == [run]
    assert runs_by_training(run.parent) == []


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


def test_a_run_whose_weights_are_damaged_is_never_taken_for_an_untrained_one(
    tiny_run: Path, tmp_path: Path
) -> None:
    """They may have been the best ones: nothing proves that there is nothing to lose."""
    for name in ("config.json", "plan.json", "tokenizer.json", "model.safetensors"):
        shutil.copy(tiny_run / name, tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    held = sorted(tmp_path.iterdir())

    assert not is_untrained(tmp_path)
    remove_untrained(tmp_path)
    assert sorted(tmp_path.iterdir()) == held
