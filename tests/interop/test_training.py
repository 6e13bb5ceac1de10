"""Models of the hub are trained further and leave again: folders as transformers writes them, with
random weights in the shapes of SmolLM2-135M and GPT-2, fewer layers and tokens apart.
"""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

import minigpt
from minigpt.interop.huggingface import write_folder
from minigpt.recipe.rules import short_context
from minigpt.runs.find import load_run
from minigpt.tokenizer import load_tokenizer

from ..conftest import TINY, some_text
from ..lazy import Lazy
from .examples import HARD_TEXT, byte_pairs, randomize, weights_of
from .test_huggingface import GPT2_124M, SMOLLM2_135M
from .test_tokenizer_import import SMOLLM

transformers = Lazy("transformers")

pytestmark = pytest.mark.long

TOKENIZERS = {"SmolLM2": SMOLLM["all bytes"].to_str, "GPT-2": byte_pairs().to_json}
SHORT: dict[str, Any] = {
    "steps": 2,
    "num_evals": 1,
    "batch_size": 1,
    "device": "cpu",
    "precision": "float32",
}


@pytest.fixture(scope="module")
def start(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of one layer, in bfloat16 and in shards, as larger models are."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "tokenizer.json").write_text(TOKENIZERS[request.param](), encoding="utf-8")
    vocab_size = load_tokenizer(folder).vocab_size
    theirs: Any
    if request.param == "GPT-2":
        shape = GPT2_124M | {"vocab_size": vocab_size, "n_layer": 1}
        theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape))
    else:
        shape = SMOLLM2_135M | {"vocab_size": vocab_size, "num_hidden_layers": 1}
        theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape))

    torch.manual_seed(0)
    randomize(theirs)
    theirs.to(torch.bfloat16).save_pretrained(folder, max_shard_size="5MB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    return folder


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "my.txt"
    file.write_text(some_text(words=9000) + "In 1984 <|im_start|> naïve\n")
    return file


@pytest.mark.parametrize("start", TOKENIZERS, indirect=True)
def test_a_model_of_the_hub_learns_and_is_the_same_in_transformers_afterwards(
    start: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(start))
    name = "hf:owner/model"
    before = transformers.AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32)
    run = minigpt.train(text, init=name, out=tmp_path / "run", learning_rate=1e-3, **SHORT)

    trained = load_run(run)
    assert trained.tokenizer.to_json() == load_tokenizer(start).to_json()
    assert trained.config is not None and trained.config.origin.text is not None
    assert trained.config.origin.text.init == name
    config = trained.glass.config
    assert config.context_length == 4 * short_context("bpe")
    (tmp_path / "out").mkdir()
    write_folder(tmp_path / "out", config, weights_of(trained.model), trained.tokenizer)

    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    library = Tokenizer.from_file(str(start / "tokenizer.json"))
    library.encode_special_tokens = True  # the name of a special token in a text is text
    for hard in (HARD_TEXT, "In 1984,  <|im_start|>½ of 12,345.67 <|endoftext|>\n\n\t\u0663"):
        ids_of_text = trained.tokenizer.encode(hard)
        assert ids_of_text == library.encode(hard).ids == tokenizer(hard)["input_ids"]
        assert trained.tokenizer.decode(ids_of_text) == tokenizer.decode(ids_of_text) == hard

    after = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    ids = torch.randint(config.vocab_size, (2, 60), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = trained.model(ids)  # (2, 60, vocab_size)
        torch.testing.assert_close(after(ids).logits, logits, rtol=0, atol=1e-4)
        change = (before(ids).logits - logits).std() / logits.std()
    assert 1e-3 < change < 0.5  # it is the model of the folder, and it has learned


def test_what_is_exported_goes_on_with_the_trainer_of_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten steps of theirs, from what ours has learned, lower the loss further."""
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "my.txt").write_text(some_text(words=3000))
    run = minigpt.train(tmp_path / "my.txt", out=tmp_path / "run", **TINY | {"steps": 20})
    found = load_run(run)
    out = tmp_path / "out"
    out.mkdir()
    write_folder(out, found.glass.config, weights_of(found.model), found.tokenizer)

    model = transformers.AutoModelForCausalLM.from_pretrained(out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    ids = tokenizer(some_text(words=3000))["input_ids"]
    rows = [{"input_ids": ids[i : i + 16], "labels": ids[i : i + 16]} for i in range(0, 1600, 16)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "theirs"),
        max_steps=10,
        per_device_train_batch_size=16,
        learning_rate=1e-2,
        report_to=[],
        use_cpu=True,
    )
    trainer = transformers.Trainer(model, arguments, train_dataset=rows, eval_dataset=rows)
    before = trainer.evaluate()["eval_loss"]
    assert before < 0.7 * math.log(found.glass.config.vocab_size)
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < before - 0.02
