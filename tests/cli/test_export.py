"""`minigpt export`, `minigpt import` and `train --init` as a user types them, in this process."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import minigpt
from minigpt.cli import main as cli
from minigpt.config import TrainConfig
from minigpt.runs import load_run, read_config
from minigpt.tokenizer import load_tokenizer
from minigpt.training.report import read_metrics

from ..interop.examples import TRAINING_TEXT

TINY = (
    "--emb-dim 16 --num-layers 1 --num-heads 1 --context-length 16 --batch-size 4 --steps 6 "
    "--num-evals 2 --compile off --precision float32 --device cpu"
).split()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text and a run of each kind."""
    home = tmp_path_factory.mktemp("home")
    (home / "my.txt").write_text(TRAINING_TEXT * 2, encoding="utf-8")
    (home / "new.txt").write_text("The mill flew to the bread, and the fox said no.\n" * 30)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("MINIGPT_CACHE", str(home / "cache"))
        for name, options in {
            "qwen3": "--vocab-size 290",
            "gpt2": "--vocab-size 280 --architecture gpt2",
            "char": "--tokenizer char",
        }.items():
            arguments = ["my.txt", *TINY, *options.split(), "--out", f"runs/{name}"]
            assert cli.train_main(arguments) == 0
    return home


@pytest.fixture(autouse=True)
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("MINIGPT_CACHE", str(home / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def call(command: str) -> int:
    """The exit status of a command."""
    try:
        return cli.main(command.split())
    except SystemExit as end:  # argparse's
        return int(end.code or 0)


def everything(folder: Path) -> list[Path]:
    """All that is in a folder, hidden files too."""
    return sorted(folder.rglob("*"))


@pytest.mark.parametrize("name", ["qwen3", "gpt2", "char"])
def test_an_export_writes_in_transformers_what_the_run_writes(
    name: str, tmp_path: Path, capsys: Any
) -> None:
    assert call(f"export runs/{name} --to hf --out {tmp_path}/out") == 0
    assert capsys.readouterr().out == f"{tmp_path}/out\n"
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "README.md",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    prompt = tokenizer("The", return_tensors="pt")
    written = model.generate(**prompt, do_sample=False, max_new_tokens=12)[0]
    expected = minigpt.load(f"runs/{name}", "cpu").generate("The", temperature=0, max_new_tokens=12)
    assert tokenizer.decode(written, skip_special_tokens=True) == expected


def test_the_model_card_has_the_runs_figures(tmp_path: Path) -> None:
    assert call(f"export runs/modern --out {tmp_path}/out") == 0
    card = (tmp_path / "out/README.md").read_text()
    best = min(read_metrics(Path("runs/modern/metrics.jsonl")), key=lambda row: row["val_loss"])
    assert f"{best['val_bits_per_byte']:.4f}" in card and "Qwen3ForCausalLM" in card
    assert "# modern" in card and "290 tokens" in card


@pytest.mark.parametrize("dtype", ["float32", "float16", "q8_0"])
def test_an_export_to_gguf_is_one_file(dtype: str, tmp_path: Path) -> None:
    assert call(f"export runs/gpt2 --to gguf --dtype {dtype} --out {tmp_path}/out") == 0
    assert everything(tmp_path) == [tmp_path / "out", tmp_path / f"out/gpt2-{dtype}.gguf"]


def test_without_names_the_newest_run_goes_to_a_place_of_its_own(capsys: Any) -> None:
    assert call("export") == 0
    assert capsys.readouterr().out == "exports/char-hf\n"
    assert minigpt.load("exports/char-hf", "cpu").tokenizer.vocab_size


def test_import_makes_a_run_that_is_the_exported_one(tmp_path: Path, capsys: Any) -> None:
    assert call(f"export runs/gpt2 --out {tmp_path}/elsewhere") == 0
    assert call(f"import {tmp_path}/elsewhere") == 0
    assert capsys.readouterr().out.endswith("runs/elsewhere\n")
    before, after = load_run("runs/gpt2"), load_run("runs/elsewhere")
    for name, tensor in before.model.state_dict().items():
        assert torch.equal(after.model.state_dict()[name], tensor)
    assert after.tokenizer.to_json() == before.tokenizer.to_json()
    assert Path("runs/elsewhere").stat().st_mode & 0o777 == Path("runs/gpt2").stat().st_mode & 0o777
    assert cli.generate_main("The --run runs/elsewhere --max-new-tokens 3".split()) == 0


def test_generate_takes_such_a_folder(tmp_path: Path, capsys: Any) -> None:
    assert call(f"export runs/modern --out {tmp_path}/out") == 0
    options = "--max-new-tokens 9 --seed 3 --device cpu".split()
    for run in ("runs/modern", f"{tmp_path}/out"):
        assert cli.generate_main(["The fox", "--run", run, *options]) == 0
    _, ours, theirs = capsys.readouterr().out.split("The fox")
    assert ours == theirs


def test_an_out_that_holds_something_is_left_alone(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    for command in ("export runs/modern", "export runs/modern --to gguf", "import runs/modern"):
        assert call(f"{command} --out {tmp_path}") == 2
        assert call(f"{command} --out {tmp_path}/mine.txt") == 2
    assert everything(tmp_path) == [tmp_path / "mine.txt"]
    assert capsys.readouterr().err.count("not an empty folder") == 6


def test_an_empty_out_is_filled(tmp_path: Path) -> None:
    assert call(f"export runs/modern --out {tmp_path}") == 0
    assert (tmp_path / "config.json").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("export nowhere/nothing", ["no such run", "nowhere/nothing"]),
        ("export runs/nothing", ["no such run: runs/nothing"]),
        ("export cache", ["not a run"]),
        ("export runs/modern --to onnx", ["onnx", "hf"]),
        ("export runs/modern --to hf --dtype q8_0", ["dtype", "float32 with --to hf"]),
        ("export runs/modern --to gguf --dtype q4_0", ["q4_0"]),
        ("import runs/nothing", ["no such run: runs/nothing"]),
        ("import runs/modern", ["runs/modern is a run already"]),
        ("import", ["model"]),
    ],
)
def test_a_wrong_command_writes_one_line_and_nothing_else(
    command: str, words: list[str], tmp_path: Path, capsys: Any
) -> None:
    before = everything(Path())
    out = [] if command == "import" else ["--out", f"{tmp_path}/some/out"]
    assert call(" ".join([command, *out])) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1, err
    assert all(word in err for word in words), err
    assert everything(tmp_path) == [] and everything(Path()) == before


def test_what_fails_on_the_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("minigpt.cli.main.export.write_folder", full)
    assert call(f"export runs/modern --out {tmp_path}/a/b") == 2
    assert "No space left on device" in capsys.readouterr().err
    assert everything(tmp_path) == []


@pytest.mark.parametrize("start", ["runs/modern", "runs/gpt2", "runs/char", "exported"])
def test_init_goes_on_from_a_model_and_keeps_its_tokenizer(
    start: str, tmp_path: Path, capsys: Any
) -> None:
    if start == "exported":
        start = str(tmp_path / "exported")
        assert call(f"export runs/gpt2 --out {start}") == 0
    out = tmp_path / "tuned"
    command = f"train new.txt --init {start} --steps 2 --num-evals 1 --compile off --device cpu"
    assert call(f"{command} --learning-rate 1e-9 --out {out}") == 0
    assert f"that of {start}" in capsys.readouterr().err
    before, after = minigpt.load(start, "cpu"), load_run(out)
    assert after.tokenizer.to_json() == before.tokenizer.to_json()
    assert after.config.text.init == start
    assert after.model.config == before.model.config
    for name, tensor in before.model.state_dict().items():
        torch.testing.assert_close(after.model.state_dict()[name], tensor, atol=1e-5, rtol=0)


def test_init_learns_gently_unless_told_otherwise(tmp_path: Path) -> None:
    common = "train new.txt --init runs/modern --steps 1 --num-evals 1 --compile off --out"
    assert call(f"{common} {tmp_path}/a") == 0
    assert call(f"{common} {tmp_path}/b --learning-rate 0.01") == 0
    rates = [read_config(tmp_path / name).training.learning_rate for name in "ab"]
    assert rates == [TrainConfig.learning_rate / 10, 0.01]


def test_a_run_that_began_with_init_resumes(tmp_path: Path) -> None:
    command = "train new.txt --init runs/gpt2 --steps 2 --num-evals 1 --compile off"
    assert call(f"{command} --out {tmp_path}/tuned") == 0
    assert call(f"train --resume --out {tmp_path}/tuned --steps 4 --num-evals 2") == 0
    assert read_metrics(tmp_path / "tuned/metrics.jsonl")[-1]["step"] == 4


def test_a_shorter_context_keeps_the_first_positions(tmp_path: Path) -> None:
    for architecture in ("gpt2", "qwen3"):
        command = (
            f"train new.txt --init runs/{architecture} --context-length 8 --steps 1 --compile off"
        )
        assert call(f"{command} --learning-rate 1e-9 --out {tmp_path}/{architecture}") == 0
        before, after = load_run(f"runs/{architecture}"), load_run(tmp_path / architecture)
        assert after.model.config.context_length == 8
        ids = torch.arange(8)[None]
        torch.testing.assert_close(after.model(ids), before.model(ids), atol=1e-4, rtol=0)


def test_the_token_cache_tells_tokenizers_apart(tmp_path: Path) -> None:
    """The same text and settings, two tokenizers to keep."""
    for name in ("qwen3", "gpt2"):
        command = (
            f"train new.txt --init runs/{name} --steps 1 --compile off --out {tmp_path}/{name}"
        )
        assert call(command) == 0
        tokenizer = load_tokenizer(tmp_path / name / "tokenizer.json")
        assert tokenizer.to_json() == load_tokenizer(f"runs/{name}/tokenizer.json").to_json()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--init runs/modern --emb-dim 32", ["--init keeps", "leave out --emb-dim"]),
        ("--init runs/modern --tokenizer char", ["leave out --tokenizer"]),
        ("--init runs/modern --embedding-init random", ["leave out --embedding-init"]),
        ("--init runs/modern --vocab-size 500", ["leave out --vocab-size"]),
        ("--init runs/gpt2 --context-length 32", ["at most 16", "got 32"]),
        ("--init runs/nothing", ["no such run: runs/nothing"]),
        ("--init runs/modern --resume", ["--resume"]),
    ],
)
def test_init_refuses_what_would_change_the_model(
    options: str, words: list[str], tmp_path: Path, capsys: Any
) -> None:
    assert call(f"train new.txt {options} --out {tmp_path}/out") == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert err.startswith("error: ") and all(word in err for word in words), err
    assert everything(tmp_path) == []


def test_rotary_positions_may_be_given_more_room(tmp_path: Path) -> None:
    command = "train my.txt --init runs/modern --context-length 24 --steps 1 --compile off"
    assert call(f"{command} --out {tmp_path}/out") == 0
    assert read_config(tmp_path / "out").model.context_length == 24


def test_nothing_optional_is_loaded_unless_asked_for() -> None:
    """transformers compares in tests only; gguf and the hub's package wait until they are used."""
    code = (
        "import sys, minigpt; minigpt.load('exports/gpt2-hf', 'cpu').generate(max_new_tokens=1)\n"
        "from minigpt.exchange import export_model\n"
        "assert not {'transformers', 'gguf', 'huggingface_hub'} & set(sys.modules)\n"
        "import minigpt.interop.gguf, minigpt.interop.hub\n"
        "assert not {'transformers', 'gguf', 'huggingface_hub'} & set(sys.modules)\n"
    )
    assert call("export runs/gpt2") == 0
    root = Path(minigpt.__file__).parent.parent
    subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(root)}, check=True
    )


@pytest.mark.parametrize("part", ["training", "generation", "interop"])
def test_the_parts_do_not_know_of_one_another(part: str) -> None:
    others = {"training", "generation", "interop"} - {part}
    for file in (Path(minigpt.__file__).parent / part).glob("*.py"):
        imported = re.findall(r"^\s*from \.\.?(\w+)", file.read_text(), re.MULTILINE)
        assert not others & set(imported), file
