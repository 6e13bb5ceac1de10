"""On a GPU all goes as on the CPU: attention, losses, trainings of every kind, and the use of their
runs. `make test-gpu` runs it.

MINIGPT_TEST_DEVICE=cpu tries the tests themselves on a machine without a GPU.

Trainings on both devices differ by rounding alone: in float32 losses, near 5.6, agree to 1e-3. Some
kernels of a GPU add up in another order each time, and so does an interrupted training: it agrees
with an uninterrupted one to 1e-4, not bit for bit.
"""

import contextlib
import gc
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import minigpt
from minigpt.attention import KeyValueCache, MultiHeadAttention
from minigpt.cli import main
from minigpt.config import GPTConfig, TrainConfig
from minigpt.devices.check import why_wrong
from minigpt.devices.choice import find_device, this_gpu
from minigpt.model import GPT, flops_per_token
from minigpt.recipe.speed import SHAPE_ON_GPU, measure_speed
from minigpt.runs.folder import METRICS, read_config, read_metrics
from minigpt.training.callbacks import Figures
from minigpt.training.captured import CapturedStep, say_not_captured
from minigpt.training.distributed import device_of_rank
from tests.conftest import TINY, move_into, train_tiny
from tests.data.chats.made import some_chat
from tests.training.runs import interrupted, resume

DEVICE = os.environ.get("MINIGPT_TEST_DEVICE", "cuda")
IS_CUDA = DEVICE == "cuda"
ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        IS_CUDA and not torch.cuda.is_available(), reason="torch finds no GPU of NVIDIA or AMD here"
    ),
]
on_cuda = pytest.mark.skipif(not IS_CUDA, reason="is about CUDA alone")


def command(line: str) -> None:
    """A command as it is typed, which must succeed."""
    assert main(line.split()) == 0, line


def losses(run: Path) -> list[float]:
    """Of the validation text, at each evaluation."""
    return [float(row["val_loss"]) for row in read_metrics(run / METRICS)]


# Whether it computes rightly


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16, torch.float16])
def test_the_device_passes_the_check_in_each_precision(precision: torch.dtype) -> None:
    assert why_wrong(torch.device(DEVICE), precision) is None


@on_cuda
def test_it_is_found_where_nobody_names_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert this_gpu().problem is None
    assert (
        this_gpu().device == find_device("auto") == device_of_rank("auto") == torch.device("cuda")
    )
    assert capsys.readouterr().err == ""


@on_cuda
def test_a_training_says_which_device_it_takes_and_why(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train_tiny(device="auto", steps=1, num_evals=1)
    assert read_config(run).training.device in ("cpu", "cuda")
    assert re.search("training on cuda: for |cuda is here, but for ", capsys.readouterr().err)


@on_cuda
def test_its_speed_is_that_of_a_training_s_steps() -> None:
    """A narrow model moves what it multiplies for most of a step, and a short step is starting."""
    speed = measure_speed(torch.device("cuda"), torch.bfloat16)
    assert speed.flops > 1e12 and speed.transfer > 0.0 and speed.busy > 1
    operations = flops_per_token(SHAPE_ON_GPU) / speed.flops
    assert speed.seconds(SHAPE_ON_GPU, 64 * 256) > 2 * 64 * 256 * operations


@on_cuda
def test_cudnn_does_not_plan_for_each_shape_of_attention() -> None:
    torch.backends.cuda.enable_cudnn_sdp(True)
    find_device("cuda")
    assert not torch.backends.cuda.cudnn_sdp_enabled()


@on_cuda
def test_a_gpu_that_is_not_there_is_one_line(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("train my.txt --device cuda:99 --steps 1 --init none".split()) == 2
    said = capsys.readouterr().err
    assert "no device 'cuda:99' on this machine" in said and "Traceback" not in said


# Attention and the model


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {n: p.grad.cpu() for n, p in module.named_parameters() if p.grad is not None}


def drawn_anew(module: nn.Module) -> nn.Module:
    """All weights at random: as some begin, attention changes nothing."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape))
    return module


ATTENTION: list[dict[str, Any]] = [
    {},
    {"num_kv_heads": 1, "rotary_base": 10_000.0, "qk_norm": True},
    {"num_kv_heads": 2, "head_dim": 64, "qkv_bias": True},
    {"causal": False},
]


@pytest.mark.parametrize("parts", ATTENTION, ids=str)
@pytest.mark.parametrize("length", [1, 7, 33, 300])
def test_attention_and_its_gradients_are_those_of_the_cpu(
    parts: dict[str, Any], length: int
) -> None:
    torch.manual_seed(0)
    layer = drawn_anew(MultiHeadAttention(24, 32, 300, 0.0, 4, **parts))
    x = torch.randn(2, length, 24)

    found = {}
    for device in ("cpu", DEVICE):
        layer.zero_grad()
        layer.to(device)
        y = layer(x.to(device))
        (y**2).mean().backward()
        found[device] = {"output": y.detach().cpu(), **gradients(layer)}
    torch.testing.assert_close(found[DEVICE], found["cpu"], rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("parts", ATTENTION[:3], ids=str)
def test_attention_with_a_cache_is_that_without(parts: dict[str, Any]) -> None:
    torch.manual_seed(0)
    layer = drawn_anew(MultiHeadAttention(24, 32, 40, 0.0, 4, **parts)).to(DEVICE)
    x = torch.randn(2, 40, 24, device=DEVICE)
    cache = KeyValueCache(2, layer.num_kv_heads, 40, layer.head_dim, device=DEVICE)

    with torch.no_grad():
        in_parts = [layer(part, cache) for part in x.split([33, 1, 1, 4, 1], dim=1)]
        torch.testing.assert_close(torch.cat(in_parts, dim=1), layer(x), rtol=1e-3, atol=1e-4)
        _, weights = layer.forward_with_weights(x)  # (b, num_heads, T, T)
    assert weights.triu(diagonal=1).abs().max() == 0.0


ARCHITECTURES: dict[str, dict[str, Any]] = {
    "gpt2": {"architecture": "gpt2", "num_heads": 2},
    "qwen3": {"architecture": "qwen3", "num_heads": 4, "num_kv_heads": 2},
}


@pytest.fixture(params=ARCHITECTURES)
def model(request: pytest.FixtureRequest) -> GPT:
    """A small model of each architecture, on the CPU."""
    torch.manual_seed(0)
    shape = {"vocab_size": 61, "context_length": 37, "emb_dim": 32, "num_layers": 2}
    model = GPT(GPTConfig(**shape, **ARCHITECTURES[request.param]))
    drawn_anew(model)
    return model.eval()


@pytest.mark.parametrize("length", [1, 20, 37])
def test_the_loss_of_a_model_and_its_gradients_are_those_of_the_cpu(
    model: GPT, length: int
) -> None:
    inputs, targets = torch.randint(61, (2, 3, length))
    found = {}
    for device in ("cpu", DEVICE):
        model.zero_grad()
        model.to(device)
        loss = model.loss(inputs.to(device), targets.to(device))
        loss.backward()
        single, _ = model.token_losses(inputs.to(device), targets.to(device))
        found[device] = {"loss": loss.detach().cpu(), "of each": single.cpu(), **gradients(model)}
    torch.testing.assert_close(found[DEVICE], found["cpu"], rtol=2e-3, atol=2e-5)


def test_a_model_with_a_cache_predicts_as_without(model: GPT) -> None:
    model.to(DEVICE)
    ids = torch.randint(61, (3, 37), device=DEVICE)
    caches = model.new_caches(3)
    with torch.no_grad():
        parts = [model(part, caches=caches) for part in ids.split([20, 1, 5, 1, 10], dim=1)]
        torch.testing.assert_close(torch.cat(parts, dim=1), model(ids), rtol=1e-3, atol=1e-3)


def test_later_tokens_change_nothing_before_them(model: GPT) -> None:
    model.to(DEVICE)
    ids = torch.randint(61, (2, 37), device=DEVICE)
    changed = ids.clone()
    changed[:, 20:] = (changed[:, 20:] + 1) % 61
    with torch.no_grad():
        before, after = model(ids), model(changed)
    torch.testing.assert_close(after[:, :20], before[:, :20], rtol=1e-4, atol=1e-4)
    assert not torch.allclose(after[:, 20:], before[:, 20:], atol=1e-2)


# Trainings


class Noted:
    """The loss of each step."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_step(self, trainer: minigpt.Trainer, figures: Figures) -> None:
        self.losses.append(float(figures["loss"]))


def trained_losses(network: dict[str, Any] | None = None, **settings: Any) -> list[float]:
    """The loss of each of 12 steps of a small model."""
    dataset = minigpt.prepare("my.txt", vocab_size=300)
    torch.manual_seed(0)
    shape = {"context_length": 24, "emb_dim": 32, "num_layers": 2, "num_heads": 2}
    shape |= network or {}
    model = GPT(GPTConfig(dataset.tokenizer.vocab_size, **shape))
    usual = {"steps": 12, "num_evals": 1, "batch_size": 8, "compile": "off"}
    usual |= {"precision": "float32", "learning_rate": 1e-2}
    noted = Noted()
    config = TrainConfig(**(usual | settings))
    minigpt.Trainer(model, dataset, config, callbacks=[noted]).train()
    return noted.losses


@pytest.mark.parametrize(
    "settings",
    [{}, {"optimizer": "adamw"}, {"micro_batch_size": 3, "token_split_prob": 0.2}],
    ids=str,
)
def test_a_training_in_float32_follows_that_of_the_cpu(
    settings: dict[str, Any], workplace: Path
) -> None:
    here = trained_losses(device=DEVICE, **settings)
    assert here == pytest.approx(trained_losses(device="cpu", **settings), abs=1e-3)
    assert here[-1] < here[0] - 1.0


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_training_in_a_narrow_precision_learns_as_in_float32(
    precision: str, workplace: Path
) -> None:
    narrow = trained_losses(device=DEVICE, precision=precision)
    assert narrow == pytest.approx(trained_losses(device=DEVICE), abs=0.05)


def test_it_learns_with_dropout_of_both_kinds(workplace: Path) -> None:
    dropout = {"dropout": 0.1, "attention_dropout": 0.1}
    first = trained_losses(dropout, device=DEVICE, precision="bfloat16")
    assert first[-1] < first[0] - 0.8
    assert first != trained_losses(device=DEVICE, precision="bfloat16")


def test_compiled_losses_are_those_without_and_it_is_compiled_once(workplace: Path) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = trained_losses(device=DEVICE, compile="on")
    once = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert compiled == pytest.approx(trained_losses(device=DEVICE), abs=2e-3)
    assert 1 <= once <= 2


def test_an_interrupted_training_ends_as_an_uninterrupted_one(workplace: Path) -> None:
    settings = {"device": DEVICE, "steps": 8, "num_evals": 2}
    whole = train_tiny(out="whole", **settings)
    interrupted("parts", step=3, **settings)
    parts = resume(Path("parts"))
    assert losses(parts) == pytest.approx(losses(whole), abs=1e-4)
    weights = [load_file(run / "model.safetensors") for run in (whole, parts)]
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=1e-3)


@pytest.mark.parametrize(("first", "second"), [(DEVICE, "cpu"), ("cpu", DEVICE)])
@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_a_training_goes_on_on_another_device(
    first: str, second: str, optimizer: str, workplace: Path
) -> None:
    settings = {"steps": 8, "num_evals": 2, "optimizer": optimizer}
    whole = train_tiny(out="whole", device="cpu", **settings)
    interrupted("moved", step=3, device=first, **settings)
    command(f"train --resume --out moved --device {second} --precision float32")
    assert losses(Path("moved")) == pytest.approx(losses(whole), abs=1e-3)
    assert read_config(Path("moved")).training.device == second


# Steps that are recorded as CUDA graphs


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[CapturedStep]:
    """The steps that trainings record."""
    steps: list[CapturedStep] = []

    class Noted(CapturedStep):
        def __init__(self, *given: Any):
            super().__init__(*given)
            steps.append(self)

    monkeypatch.setattr("minigpt.training.step.CapturedStep", Noted)
    return steps


def as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no step is recorded."""
    monkeypatch.setattr("minigpt.training.step.why_not_captured", lambda *_: "a test asks for that")


@on_cuda
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"optimizer": "adamw"},
        {"micro_batch_size": 3, "token_split_prob": 0.2},
        {"precision": "bfloat16"},
        {"network": {"dropout": 0.2}},
        {"network": {"architecture": "gpt2"}},
    ],
    ids=str,
)
def test_recorded_steps_learn_what_others_do(
    settings: dict[str, Any],
    workplace: Path,
    recorded: list[CapturedStep],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also with a context that grows after 20 of 25 steps, and with the same dropout."""
    settings = {"device": DEVICE, "steps": 25, "warmup_context": 12} | settings
    found = trained_losses(**settings)
    assert [step.recorded for step in recorded] == [2]
    as_they_are(monkeypatch)
    # In bfloat16 some kernels add up in another order each time, and steps build on each other.
    rounding = 2e-2 if settings.get("precision") == "bfloat16" else 5e-3
    assert found == pytest.approx(trained_losses(**settings), abs=rounding)
    assert len(recorded) == 1 and found[-1] < found[0] - 1.0


@on_cuda
@pytest.mark.parametrize("step", [12, 18])
def test_a_recorded_training_that_is_interrupted_ends_as_another(
    step: int, workplace: Path, recorded: list[CapturedStep]
) -> None:
    """Before or after the context grows, with dropout."""
    settings = {"device": DEVICE, "steps": 24, "num_evals": 2, "warmup_context": 8, "dropout": 0.2}
    whole = train_tiny(out="whole", **settings)
    interrupted("parts", step=step, **settings)
    parts = resume(Path("parts"))
    weights = [load_file(run / "model.safetensors") for run in (whole, parts)]
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=1e-6)
    assert recorded[0].recorded == 2 and all(step.recorded >= 1 for step in recorded)


@on_cuda
def test_a_network_that_waits_for_the_gpu_is_trained_with_one_line(
    workplace: Path, recorded: list[CapturedStep], capsys: pytest.CaptureFixture[str]
) -> None:
    class Waits(Bigrams):
        def forward(self, token_ids: Tensor) -> Tensor:
            return self.table(token_ids) * (1.0 + self.table.weight[0, 0].item())

    dataset = minigpt.prepare("my.txt", vocab_size=300)
    noted = Noted()
    config = TrainConfig(steps=20, num_evals=1, batch_size=4, device=DEVICE, learning_rate=0.1)
    network = Waits(dataset.tokenizer.vocab_size)
    say_not_captured.cache_clear()
    minigpt.Trainer(network, dataset, config, callbacks=[noted]).train()
    assert noted.losses[-1] < noted.losses[0] - 1.0
    said = capsys.readouterr().err
    assert said.count("steps are not recorded as a CUDA graph") == 1 and "waits" in said
    assert recorded[0].recorded == 0


@on_cuda
def test_a_recording_that_the_driver_cuts_off_leaves_a_training_as_it_is(
    workplace: Path,
    recorded: list[CapturedStep],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With dropout, and with memory that is given back: no wait was seen before."""

    @contextlib.contextmanager
    def not_noting(_: Any) -> Iterator[list[str]]:
        yield []

    class Waits(Bigrams):
        def forward(self, token_ids: Tensor) -> Tensor:
            dropped = nn.functional.dropout(self.table(token_ids), 0.1)
            return dropped * (1.0 + self.table.weight[0, 0].item())

    monkeypatch.setattr("minigpt.training.cuda_graph.Cuda.noting_waits", not_noting)
    say_not_captured.cache_clear()
    dataset = minigpt.prepare("my.txt", vocab_size=300)
    noted = Noted()
    config = TrainConfig(steps=20, num_evals=1, batch_size=4, device=DEVICE, learning_rate=0.1)
    stream = torch.cuda.current_stream()
    network = Waits(dataset.tokenizer.vocab_size)
    minigpt.Trainer(network, dataset, config, callbacks=[noted]).train()
    assert noted.losses[-1] < noted.losses[0] - 1.0
    assert recorded[0].recorded == 0 and torch.cuda.current_stream() == stream
    assert capsys.readouterr().err.count("steps are not recorded as a CUDA graph") == 1

    recorded.clear()
    large = torch.empty(2**28, device=DEVICE)  # one gigabyte
    reserved = torch.cuda.memory_reserved()
    del large
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= reserved - 2**30


@on_cuda
def test_recorded_steps_take_little_more_memory(
    workplace: Path, recorded: list[CapturedStep], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph of the short context gives back its own before the context grows."""
    network = {"context_length": 256, "emb_dim": 256, "num_layers": 4}
    settings = {"device": DEVICE, "steps": 25, "warmup_context": 128, "batch_size": 64}
    taken = []
    counts = []
    for _ in range(2):
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        trained_losses(network, **settings)
        taken.append(torch.cuda.max_memory_reserved())
        counts += [step.recorded for step in recorded]
        recorded.clear()  # or its graph would keep its memory
        as_they_are(monkeypatch)
    assert counts == [2]
    assert taken[0] < 1.3 * taken[1]


@on_cuda
def test_a_recorded_training_that_diverges_is_stopped(
    workplace: Path, recorded: list[CapturedStep], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most one step later, and with the best weights kept."""
    rates = iter([1e-3] * 12 + [math.inf] * 100)
    monkeypatch.setattr("minigpt.training.step.rise_and_fall", lambda done, **_: next(rates))
    with pytest.raises(minigpt.UserError, match=r"became .* at step 13; the best weights"):
        train_tiny(device=DEVICE, steps=50, num_evals=10)
    kept = load_file(Path("runs/my/model.safetensors"))
    assert recorded[0].recorded == 1 and all(w.isfinite().all() for w in kept.values())


class Bigrams(nn.Module):
    """A network of somebody's own: each token's logits for the next one."""

    def __init__(self, vocab_size: int):
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.table(token_ids)


def test_a_network_a_loss_and_an_optimizer_of_ones_own(workplace: Path) -> None:
    def squared(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()) ** 2

    dataset = minigpt.prepare("my.txt", vocab_size=300)
    network = Bigrams(dataset.tokenizer.vocab_size)
    noted = Noted()
    trainer = minigpt.Trainer(
        network,
        dataset,
        TrainConfig(steps=20, num_evals=1, batch_size=4, device=DEVICE, learning_rate=0.1),
        out="own",
        loss=squared,
        optimizers=lambda model: [
            torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, foreach=True)
        ],
        callbacks=[noted],
    )
    trainer.train()
    assert noted.losses[-1] < noted.losses[0] - 1.0

    again = Bigrams(dataset.tokenizer.vocab_size)
    text = minigpt.load("own", DEVICE, model=again).generate("the", max_new_tokens=3)
    assert str(text)


# What is done with runs

SHAPE = "--num-layers 2 --emb-dim 32 --num-heads 2 --context-length 32 --batch-size 8"
SHORT = "--steps 20 --num-evals 2 --eval-tokens 512 --vocab-size 300 --compile off"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that learned on the device, in bfloat16."""
    folder = tmp_path_factory.mktemp("gpu")
    with pytest.MonkeyPatch.context() as monkeypatch:
        move_into(folder, monkeypatch)
        (folder / "chat.txt").write_text(some_chat(200))
        narrow = "--precision bfloat16 --init none"
        command(f"train my.txt --out runs/here {SHAPE} {SHORT} {narrow} --device {DEVICE}")
    return folder


@pytest.fixture
def in_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    monkeypatch.setenv("MINIGPT_CACHE", str(place / "cache"))
    return place


def test_a_run_is_evaluated_alike_on_both_devices(in_place: Path) -> None:
    here, there = (minigpt.evaluate("runs/here", "my.txt", device=d) for d in (DEVICE, "cpu"))
    assert here.loss == pytest.approx(there.loss, abs=1e-4)
    overlapping = minigpt.evaluate("runs/here", "my.txt", stride=8, batch_size=3, device=DEVICE)
    assert overlapping.loss < here.loss + 0.1


def test_the_likeliest_text_is_the_same_on_both_devices(
    in_place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = []
    for device in (DEVICE, "cpu"):
        command(
            f"generate the --run runs/here --max-new-tokens 40 --temperature 0 --device {device}"
        )
        written.append(capsys.readouterr().out)
    assert written[0] == written[1] and len(written[0]) > 40


def test_several_samples_are_written_in_each_precision(
    in_place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--run runs/here --max-new-tokens 50 --samples 3 --seed 1"
    command(f"generate the {options} --device {DEVICE}")
    command(f"generate the {options} --device {DEVICE} --precision bfloat16")
    assert len(capsys.readouterr().out) > 200


def test_it_is_explained_and_exported(
    in_place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers")
    command("explain runs/here the_fox_asked")
    command(f"export runs/here --out {tmp_path / 'out'}")

    ids = torch.randint(300, (1, 20))
    run = minigpt.load("runs/here", DEVICE)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "out", dtype=torch.float32
    )
    with torch.no_grad():
        logits = theirs.eval().to(DEVICE)(ids.to(DEVICE)).logits.cpu()
        expected = run.model.to(DEVICE)(ids.to(DEVICE)).cpu()
    torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


def test_a_run_is_trained_further_and_interpolated(in_place: Path) -> None:
    command(
        "train my.txt --out runs/tuned --init runs/here --interpolate --batch-size 8 --steps 4 "
        f"--micro-batch-size 4 --eval-tokens 512 --device {DEVICE}"
    )
    assert losses(Path("runs/tuned"))[-1] <= losses(Path("runs/here"))[-1] + 0.05


def test_a_chat_is_learned(in_place: Path) -> None:
    settings = f"{SHAPE} {SHORT} --init none --device {DEVICE}"
    command(f"train chat.txt --only Otto --out runs/chat {settings}")
    first, last = losses(Path("runs/chat"))
    assert last < first


@on_cuda
def test_out_of_memory_is_one_line_that_says_what_to_make_smaller(
    in_place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    too_large = "--batch-size 2000 --context-length 512 --emb-dim 2048 --num-heads 16"
    line = f"train my.txt --out runs/large --num-layers 1 {too_large} --vocab-size 300 --steps 1"
    assert main(f"{line} --precision float32 --init none --device cuda".split()) == 2

    said = capsys.readouterr().err
    assert "error: out of memory; try --micro-batch-size 1000" in said and "Traceback" not in said
    command("generate the --run runs/here --max-new-tokens 2 --device cuda")  # memory is free again


# Several processes


def torchrun(folder: Path, processes: int, line: str) -> tuple[int, str]:
    """The exit status of a training in processes that torchrun starts, and what they print."""
    program = [sys.executable, "-m", "torch.distributed.run", "--standalone"]  # at a free port
    program += ["--nproc-per-node", str(processes)]
    settings = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    places = {"MINIGPT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*program, "-m", "minigpt", "train", "my.txt", "--init=none", *settings, *line.split()],
        cwd=folder,
        env={**os.environ, **places, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
        check=False,
    )
    return done.returncode, done.stdout


def test_one_process_trains_on_the_device(workplace: Path) -> None:
    status, said = torchrun(workplace, 1, f"--device {DEVICE} --out one")
    assert status == 0, said
    assert read_config(workplace / "one").training.device == DEVICE


@on_cuda
@pytest.mark.skipif(torch.cuda.device_count() > 1, reason="there is a GPU for each process")
@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_two_processes_do_not_share_a_gpu(device: str, workplace: Path) -> None:
    status, said = torchrun(workplace, 2, f"--device {device} --out two")
    assert status == 1 and said.count("error: several processes train on --device cpu") == 1, said
    assert "exitcode  : 2" in said, said
    assert not (workplace / "two").exists()


def test_two_processes_train_on_the_cpu_beside_a_gpu(workplace: Path) -> None:
    status, said = torchrun(workplace, 2, "--device cpu --out two")
    assert status == 0, said
    alone = train_tiny(out="alone", init="none")
    assert losses(workplace / "two") == pytest.approx(losses(alone), abs=1e-4)
