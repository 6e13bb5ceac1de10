"""`minigpt export`, `train --init`: models that leave, come and learn more."""

import json
import re
import shlex
import shutil
from pathlib import Path

import huggingface_hub
import pytest
import torch

import minigpt
from minigpt.config import TrainConfig
from minigpt.recipe.tuning import tuning_rate
from minigpt.runs.folder import read_config, read_metrics
from minigpt.runs.listing import Run
from minigpt.runs.read_model import load_run

from ..conftest import move_into, some_text, train_tiny
from ..lazy import Lazy
from .conftest import Type, assert_refused

transformers = Lazy("transformers")

pytestmark = pytest.mark.long

KINDS = {
    "qwen3": {},
    "llama": {"architecture": "llama"},
    "gpt2": {"architecture": "gpt2"},
    "char": {"tokenizer": "char"},
}
SHORT = "--steps 1 --num-evals 1 --compile off --device cpu --precision float32"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two texts and a run of each kind."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as monkeypatch:
        move_into(home, monkeypatch)
        (home / "new.txt").write_text(some_text(seed=1))
        for name, settings in KINDS.items():
            train_tiny(out=f"runs/{name}", steps=2, **settings)
    return home


@pytest.fixture(autouse=True)
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("MINIGPT_CACHE", str(home / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def everything(folder: Path) -> list[Path]:
    """All that is in a folder, hidden files too."""
    return sorted(folder.rglob("*"))


def assert_same_weights(a: torch.nn.Module, b: torch.nn.Module, atol: float = 0.0) -> None:
    for name, tensor in a.state_dict().items():
        torch.testing.assert_close(b.state_dict()[name], tensor, atol=atol, rtol=0)


# Out


@pytest.mark.parametrize("name", KINDS)
def test_an_export_writes_in_transformers_what_the_run_writes(
    name: str, tmp_path: Path, type_: Type
) -> None:
    status, out, err = type_(f"export runs/{name} --to hf --out {tmp_path}/out")
    assert (status, out) == (0, f"{tmp_path}/out\n") and "from_pretrained" in err
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    prompt = tokenizer("the", return_tensors="pt")
    written = model.generate(**prompt, do_sample=False, max_new_tokens=12)[0]
    expected = minigpt.load(f"runs/{name}", "cpu").generate("the", temperature=0, max_new_tokens=12)
    assert tokenizer.decode(written, skip_special_tokens=True) == expected


def test_an_export_to_gguf_is_one_file(tmp_path: Path, type_: Type) -> None:
    status, _, said = type_(f"export runs/gpt2 --to gguf --out {tmp_path}/out")
    length = minigpt.load("runs/gpt2", "cpu").usual.dry_allowed_length
    assert status == 0
    assert "--temp 0.7 --dry-multiplier 2 --dry-base 2" in said
    assert f"--dry-allowed-length {length} -p" in said
    assert everything(tmp_path) == [tmp_path / "out", tmp_path / "out/gpt2.gguf"]


def test_without_names_the_newest_run_goes_to_a_place_of_its_own(type_: Type) -> None:
    assert type_("export")[:2] == (0, "exports/char-hf\n")
    assert minigpt.load("exports/char-hf", "cpu").tokenizer.vocab_size


# The model card


def card_of(folder: Path) -> huggingface_hub.ModelCard:
    return huggingface_hub.ModelCard.load(folder / "README.md")


def code_of(card: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", card, re.S | re.M)


@pytest.mark.parametrize("name", KINDS)
def test_the_code_of_a_card_runs(
    name: str,
    tmp_path: Path,
    type_: Type,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / f"my model of {name}"
    assert type_("export", f"runs/{name}", "--out", str(out))[0] == 0
    monkeypatch.chdir(tmp_path)
    card = card_of(out)
    (python,) = code_of(card.text, "python")
    prompt = shlex.split(code_of(card.text, "sh")[0])[2]
    exec(python, {})
    assert capsys.readouterr().out.startswith(prompt)

    commands = "".join(code_of(card.text, "sh")).splitlines()
    generate, export, llama = (shlex.split(command) for command in commands)
    assert type_(*generate[1:], "--max-new-tokens", "2")[1].startswith(prompt)
    assert type_(*export[1:])[0] == 0
    assert Path(llama[llama.index("-m") + 1]).is_file()


def test_a_card_tells_the_hub_what_it_needs_and_leaves_the_licence_to_the_owner(
    tmp_path: Path, type_: Type
) -> None:
    assert type_(f"export runs/gpt2 --out {tmp_path}/out")[0] == 0
    card = card_of(tmp_path / "out")
    assert card.data.library_name == "transformers"
    assert card.data.pipeline_tag == "text-generation"
    assert card.data.tags == ["minigpt", "gpt2"]
    assert card.data.license is None and card.data.language is None
    assert card.data.base_model is None
    assert "Left to the owner" in card.text


def test_a_card_tells_how_the_model_was_made_and_how_good_it_is(
    tmp_path: Path, type_: Type
) -> None:
    assert type_(f"export runs/qwen3 --out {tmp_path}/out")[0] == 0
    text = card_of(tmp_path / "out").text
    about = Run("runs/qwen3").about()
    assert f"{about['parameters'] / 1e6:.2f} million parameters" in text
    assert f"| this model | {about['bits_per_byte']:.3f} |" in text
    assert (
        f"| counting which token follows which four | {about['counting_bits_per_byte']:.3f} |"
        in text
    )
    assert "Text: `my.txt`, 2.35kB to learn from and 262B to validate on" in text
    assert "minutes, 2 steps on cpu in float32" in text
    assert f"version {minigpt.__version__}" in text


def test_a_card_holds_nothing_of_the_text_and_no_path(tmp_path: Path, type_: Type) -> None:
    secret = tmp_path / "secret place"
    secret.mkdir()
    words = "zyx wvu tsr qpo"
    (secret / "my `own`.txt").write_text(f"{words}\n" * 400)
    train_tiny(secret / "my `own`.txt", out=tmp_path / "run", steps=1)
    assert type_("export", str(tmp_path / "run"), "--out", str(tmp_path / "out"))[0] == 0
    text = (tmp_path / "out/README.md").read_text()
    assert "`my 'own'.txt`" in text
    assert not [word for word in (*words.split(), "secret", str(tmp_path)) if word in text]


def test_a_card_names_each_text_without_its_folders_also_one_that_was_read_on_windows(
    tmp_path: Path, type_: Type
) -> None:
    shutil.copytree("runs/qwen3", tmp_path / "run")
    config = json.loads((tmp_path / "run/config.json").read_text())
    config["origin"]["text"]["files"] = [r"C:\secret\my.txt", "."]
    (tmp_path / "run/config.json").write_text(json.dumps(config))
    assert type_(f"export {tmp_path}/run --out {tmp_path}/out")[0] == 0
    text = card_of(tmp_path / "out").text
    assert "Text: `my.txt`, `.`, " in text and "secret" not in text


def test_a_card_of_a_model_that_is_no_run_says_only_what_is_known(
    tmp_path: Path, type_: Type
) -> None:
    assert type_(f"export runs/llama --out {tmp_path}/first")[0] == 0
    assert type_(f"export {tmp_path}/first --out {tmp_path}/second")[0] == 0
    text = card_of(tmp_path / "second").text
    assert "million parameters" in text and "## How to use it" in text
    assert "## Training" not in text and "## How good" not in text


# In


def test_an_exported_folder_is_the_run_to_every_command(tmp_path: Path, type_: Type) -> None:
    """But only the run knows that its text is a single document, which a text does not end."""
    out = tmp_path / "out"
    assert type_(f"export runs/gpt2 --out {out}")[0] == 0
    before, after = minigpt.load("runs/gpt2", "cpu"), minigpt.load(out, "cpu")
    assert_same_weights(before.model, after.model)
    assert before.usual == after.usual != minigpt.SampleConfig()
    assert after.tokenizer.to_json() == before.tokenizer.to_json()
    options = "--max-new-tokens 9 --seed 3 --device cpu"
    texts = [type_(f"generate the --run {run} {options}")[1] for run in ("runs/gpt2", out)]
    assert texts[0].startswith(texts[1].strip()) and texts[1]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("export nowhere/nothing", "nowhere/nothing"),
        ("export cache", "not a run"),
        ("export runs/qwen3 --to onnx", "onnx"),
    ],
)
def test_a_wrong_command_is_refused_and_writes_nothing(
    command: str, words: str, tmp_path: Path, type_: Type
) -> None:
    before = everything(Path())
    assert_refused(type_(f"{command} --out {tmp_path}/some/out"), words)
    assert everything(tmp_path) == [] and everything(Path()) == before


def test_an_out_that_holds_something_is_left_alone(tmp_path: Path, type_: Type) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    for command in ("export runs/qwen3", "export runs/qwen3 --to gguf"):
        assert_refused(type_(f"{command} --out {tmp_path}"), "not an empty folder")
    assert everything(tmp_path) == [tmp_path / "mine.txt"]


# Trained on


@pytest.mark.parametrize("start", ["runs/qwen3", "runs/gpt2", "runs/char", "exported"])
def test_init_goes_on_from_a_model_and_keeps_its_tokenizer(
    start: str, tmp_path: Path, type_: Type
) -> None:
    if start == "exported":
        start = str(tmp_path / "exported")
        assert type_(f"export runs/gpt2 --out {start}")[0] == 0
    out = tmp_path / "tuned"
    status, _, err = type_(f"train new.txt --init {start} {SHORT} --learning-rate 1e-9 --out {out}")
    assert status == 0 and start in err
    before, after = minigpt.load(start, "cpu"), load_run(out)
    assert after.tokenizer.to_json() == before.tokenizer.to_json()
    assert after.config.text.init == start and after.model.config == before.model.config
    assert_same_weights(before.model, after.model, atol=1e-5)


def test_of_a_model_of_characters_no_tokens_are_split(type_: Type) -> None:
    """Nor is it said: it brings its tokenizer, whatever --tokenizer is by default."""
    plan = "train my.txt --plan --minutes 20 --init"
    assert "tokens are split" not in type_(f"{plan} runs/char")[1]
    assert "--token-split-prob 0 " in type_(f"{plan} runs/char")[1]
    assert "tokens are split" in type_(f"{plan} runs/qwen3 --token-split-prob 0.1")[1]
    assert_refused(type_(f"{plan} runs/char --token-split-prob 0.1"), "beside --tokenizer char")


def test_init_learns_gently_unless_told_otherwise_and_resumes(tmp_path: Path, type_: Type) -> None:
    """A run by the rules of tuning, a model of another program at a tenth of the usual rate."""
    assert type_(f"export runs/gpt2 --out {tmp_path}/exported")[0] == 0
    common = f"train new.txt {SHORT} --out {tmp_path}"
    assert type_(f"{common}/a --init runs/gpt2")[0] == 0
    assert type_(f"{common}/b --init {tmp_path}/exported")[0] == 0
    assert type_(f"{common}/c --init runs/gpt2 --learning-rate 0.01")[0] == 0

    rates = [read_config(tmp_path / name).training.learning_rate for name in "abc"]
    before = json.loads((tmp_path / "a/plan.json").read_text())["text"]["loss_before"]
    width = load_run("runs/gpt2").glass.config.emb_dim
    tenth = TrainConfig().learning_rate * 2**0.5 / 10
    assert rates == [tuning_rate(before, width), pytest.approx(tenth, rel=1e-3), 0.01]

    assert type_(f"train --resume --out {tmp_path}/a --steps 3")[0] == 0
    assert read_metrics(tmp_path / "a/metrics.jsonl")[-1]["step"] == 3


def test_weights_are_interpolated_if_a_training_begins_with_a_model_and_only_then(
    tmp_path: Path, type_: Type
) -> None:
    """Planned, unless it is turned off when the training begins."""
    options = f"{SHORT} --out {tmp_path}/out"
    refused = type_(f"train new.txt {options} --interpolate")
    assert_refused(refused, "begins with a model", "--init")
    assert everything(tmp_path) == []

    assert type_(f"train new.txt {SHORT} --out {tmp_path}/a --no-interpolate")[0] == 0
    assert type_(f"train new.txt {SHORT} --out {tmp_path}/b --init runs/qwen3")[0] == 0
    assert type_(f"train new.txt {options} --init runs/qwen3 --no-interpolate")[0] == 0
    is_on = [read_config(tmp_path / name).training.interpolate for name in ("a", "b", "out")]
    assert is_on == [False, True, False]

    later = type_(f"train --resume --out {tmp_path}/out --steps 2 --interpolate")
    assert_refused(later, "resume with the settings that the run began with")
    later = type_(f"train --resume --out {tmp_path}/a --steps 2 --interpolate")
    assert_refused(later, "begins with a model")
    assert type_(f"train --resume --out {tmp_path}/b --steps 2 --no-interpolate")[0] == 0


@pytest.mark.parametrize(("name", "length"), [("gpt2", 8), ("qwen3", 8), ("qwen3", 24)])
def test_init_with_another_context_keeps_the_first_positions(
    name: str, length: int, tmp_path: Path, type_: Type
) -> None:
    options = f"--init runs/{name} --context-length {length} --learning-rate 1e-9"
    assert type_(f"train new.txt {options} {SHORT} --out {tmp_path}/out")[0] == 0
    before, after = load_run(f"runs/{name}"), load_run(tmp_path / "out")
    assert after.model.config.context_length == length
    ids = torch.arange(8)[None]
    torch.testing.assert_close(after.model(ids), before.model(ids), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--init runs/qwen3 --emb-dim 32", ["--init keeps", "leave out --emb-dim"]),
        ("--init runs/qwen3 --tokenizer char", ["leave out --tokenizer"]),
        ("--init runs/qwen3 --embedding-init random", ["leave out --embedding-init"]),
        ("--init runs/qwen3 --vocab-size 500", ["leave out --vocab-size"]),
        ("--init runs/gpt2 --context-length 32", ["at most 16", "got 32"]),
        ("--init runs/nothing", ["no such run: runs/nothing"]),
        ("--init runs/qwen3 --resume", ["--resume"]),
    ],
)
def test_init_refuses_what_would_change_the_model(
    options: str, words: list[str], tmp_path: Path, type_: Type
) -> None:
    assert_refused(type_(f"train new.txt {options} --out {tmp_path}/out"), *words)
    assert everything(tmp_path) == []
