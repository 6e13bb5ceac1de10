"""A network that is not exactly a GPT: it is known for what it is, written with as it computes, and
a run of it is refused by name wherever a run is read.
"""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

import minigpt
from minigpt import UserError
from minigpt.attention import MultiHeadAttention, RotaryPositions, causal_average
from minigpt.cli import main
from minigpt.config import GPTConfig, TrainConfig
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.generation.torch_gpt import TorchGPT, engine_of, glass_of, network_name
from minigpt.generation.window import Window
from minigpt.model import GPT, FeedForward
from minigpt.recipe.texts_while_learning import Samples
from minigpt.runs.folder import WEIGHTS
from minigpt.runs.state import texts_of_evaluations
from minigpt.runs.weights import read_network, save_weights
from minigpt.training.checkpoint import Learner, TrainingState, load_checkpoint, save_checkpoint
from minigpt.training.optimizer import make_optimizers
from tests.conftest import move_into
from tests.training.runs import resume

SHAPE: dict[str, Any] = {"context_length": 8, "emb_dim": 8, "num_layers": 2, "num_heads": 2}


class Square(FeedForward):
    """The same weights, and another nonlinearity."""

    def forward(self, x: Tensor) -> Tensor:
        return self.out_proj(F.relu(self.W_in(x)).square())


class Squared(GPT):
    """A GPT whose blocks have it."""

    def __init__(self, config: GPTConfig):
        super().__init__(config)
        for block in self.blocks:
            block.feed_forward = Square(config)


class Mixing(FeedForward):
    """Looks at earlier tokens, which no key/value cache knows."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(causal_average(x))


def randomised(model: GPT) -> GPT:
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model.eval()


def gpt(**changes: Any) -> GPT:
    return randomised(GPT(GPTConfig(11, **(SHAPE | changes))))


# What a network is called


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture": "gpt2"},
        {"architecture": "gpt2", "tie_embeddings": False},
        {"architecture": "llama", "norm": "layer", "bias": True, "feed_forward": "gelu"},
        {"num_kv_heads": 1, "head_dim": 6, "rotary_base": 500.0, "dropout": 0.3},
        {"tie_embeddings": False, "norm_eps": 1e-3, "attention_dropout": 0.1},
    ],
    ids=str,
)
def test_a_gpt_is_a_gpt_whatever_its_config_its_type_and_how_it_is_trained(
    changes: dict[str, Any],
) -> None:
    model = gpt(**changes)
    frozen, without_dropout = copy.deepcopy(model), copy.deepcopy(model)
    frozen.requires_grad_(False)
    without_dropout.blocks[0].dropout = nn.Identity()
    without_dropout.dropout.p = 0.7
    copies = [
        model.train(),
        model.double(),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ]
    of_half, compiled_block = copy.deepcopy(model).half(), copy.deepcopy(model)
    compiled_block.blocks[0] = torch.compile(compiled_block.blocks[0], backend="eager")
    compiled = torch.compile(model, backend="eager")
    wrapped = [compiled, nn.DataParallel(model), nn.DataParallel(compiled), compiled_block]
    for same in (*copies, frozen, without_dropout, of_half, *wrapped):
        assert network_name(same) == "GPT"


def replaced(path: str, value: Any) -> Callable[[GPT], None]:
    def change(model: GPT) -> None:
        owner, _, name = path.rpartition(".")
        setattr(model.get_submodule(owner), name, value)

    return change


CHANGES: dict[str, tuple[Callable[[GPT], None], str]] = {
    "a part": (
        replaced("blocks.1.feed_forward", Square(GPTConfig(11, **SHAPE))),
        "GPT with Square as blocks.1.feed_forward",
    ),
    "no part": (replaced("final_norm", nn.Identity()), "GPT with Identity as final_norm"),
    "a sum": (
        replaced("blocks.0.feed_forward.W_in", nn.Sequential(nn.Linear(8, 24))),
        "GPT with Sequential as blocks.0.feed_forward.W_in",
    ),
    "a part more": (replaced("extra", nn.Linear(2, 2)), "GPT with Linear as extra"),
    "other heads": (
        replaced("blocks.0.attention", MultiHeadAttention(8, 8, 8, 0.0, 4, qk_norm=True)),
        "GPT with a changed blocks.0.attention",
    ),
    "no mask": (replaced("blocks.0.attention.causal", False), "a changed blocks.0.attention"),
    "turned faster": (
        replaced("blocks.1.attention.rotary", RotaryPositions(4, 8, 7.0)),
        "GPT with a changed blocks.1.attention.rotary",
    ),
    "scaled positions": (
        lambda model: model.blocks[1].attention.rotary.cos.mul_(0.9),
        "GPT with a changed blocks.1.attention.rotary",
    ),
    "a buffer more": (
        lambda model: model.blocks[0].register_buffer("scale", torch.ones(1)),
        "GPT with a changed blocks.0",
    ),
    "a buffer that is not saved": (
        lambda model: model.register_buffer("scale", torch.ones(1), persistent=False),
        "GPT with a changed forward",
    ),
    "positions of one's own": (
        replaced("blocks.1.attention.process_heads", lambda queries, keys: (keys, queries)),
        "GPT with a changed blocks.1.attention",
    ),
    "an epsilon": (replaced("final_norm.eps", 0.1), "GPT with a changed final_norm"),
    "a method": (replaced("blocks.0.forward", lambda x, cache=None: x), "a changed blocks.0"),
    "no positions": (
        replaced("blocks.1.attention.rotary", None),
        "GPT without blocks.1.attention.rotary",
    ),
    "fewer blocks": (lambda model: model.blocks.pop(1), "GPT without blocks.1"),
    "one block twice": (
        lambda model: model.blocks.__setitem__(1, model.blocks[0]),
        "GPT without blocks.1",
    ),
    "a head of its own": (
        lambda model: setattr(model.head, "weight", nn.Parameter(torch.ones(11, 8))),
        "GPT with other weights",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_gpt_with_a_changed_part_is_called_by_it_and_never_read_by_the_glass_engine(
    what: str,
) -> None:
    change, name = CHANGES[what]
    model = gpt(tie_embeddings=True)
    change(model)
    assert name in network_name(model)
    with pytest.raises(UserError, match=r"computes minigpt's own GPT only, not this one: GPT with"):
        glass_of(model)
    assert isinstance(engine_of(model), TorchGPT)


# Writing with it


def with_hook() -> GPT:
    model = gpt()
    model.blocks[0].register_forward_hook(lambda part, given, output: causal_average(output))
    return model


def mixing() -> GPT:
    model = gpt()
    model.blocks[0].feed_forward = Mixing(model.config)
    return randomised(model)


def with_positions_of_its_own() -> GPT:
    model = gpt(positions="learned")
    turn = RotaryPositions(4, 8, 7.0)
    for block in model.blocks:
        block.attention.process_heads = lambda queries, keys: (turn(queries), turn(keys))
    return model


MODELS: dict[str, Callable[[], GPT]] = {
    "positions of its own": with_positions_of_its_own,
    "a subclass": lambda: randomised(Squared(GPTConfig(11, **SHAPE))),
    "a part that looks back": mixing,
    "a hook": with_hook,
}


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_written_is_what_the_network_predicts_from_the_whole_text(kind: str) -> None:
    """Token after token, of two texts that begin alike, and beyond the context."""
    model = MODELS[kind]()
    engine = engine_of(model)
    window, ids = Window(engine, [3, 1, 4], samples=2), np.array([[3, 1, 4], [3, 1, 4]])
    draw = np.random.default_rng(0)
    for length in range(3, 12):
        found = window.next_logits()
        seen = ids if length <= 8 else ids[:, 5:]  # of a full window the later half is read again
        with torch.no_grad():
            expected = model(torch.from_numpy(seen))[:, -1].numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        new = draw.integers(11, size=2)
        window.append(new)
        ids = np.concatenate((ids, new[:, None]), axis=1)


@pytest.mark.parametrize(
    "wrap", [nn.DataParallel, lambda model: torch.compile(model, backend="eager")]
)
def test_torch_writes_with_a_wrapped_gpt_as_with_the_gpt_itself(wrap: Any) -> None:
    model = gpt()
    prompt = [3, 1, 4]
    expected = Window(engine_of(model), prompt, samples=2).next_logits()
    engine = TorchGPT(wrap(model))
    window = Window(engine, prompt, samples=2)
    np.testing.assert_allclose(window.next_logits(), expected, atol=1e-5)
    window.append(np.array([5, 6]))
    assert window.next_logits().shape == (2, 11)


def test_writing_with_a_model_leaves_each_part_of_it_in_the_mode_it_was_in() -> None:
    """And nothing is dropped while it writes."""
    model = GPT(GPTConfig(11, context_length=8, emb_dim=8, num_heads=2, dropout=0.5)).train()
    model.blocks[0].eval()
    modes = [part.training for part in model.modules()]
    engine = TorchGPT(model)
    ids = np.array([[3, 1, 4]])
    np.testing.assert_array_equal(engine(ids), engine(ids))
    cached = engine.next_logits(ids, engine.new_cache(1))
    np.testing.assert_allclose(cached, engine(ids)[:, -1], atol=1e-5)
    assert [part.training for part in model.modules()] == modes


def test_a_gpt_is_still_written_with_by_the_glass_engine() -> None:
    assert isinstance(engine_of(gpt()), NumpyGPT)


# Its run


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The place of a run of a Squared, trained through the public names."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        place = move_into(tmp_path_factory.mktemp("squared"), monkeypatch)
        text = minigpt.TextConfig(files=("my.txt",), vocab_size=300)
        dataset = prepare_tokens(find_source(text), text)
        model = Squared(GPTConfig(300, **SHAPE))
        config = TrainConfig(steps=4, num_evals=2, batch_size=4, device="cpu")
        out = Path("runs/squared")
        minigpt.Trainer(model, dataset, config, out=out, callbacks=[Samples()]).train()
        return place


@pytest.fixture
def squared(trained_once: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of a Squared, to be read only."""
    monkeypatch.chdir(trained_once)
    monkeypatch.setenv("MINIGPT_CACHE", str(trained_once / "cache"))
    return Path("runs/squared")


def test_a_run_of_another_network_is_refused_by_name_wherever_a_run_is_read(
    squared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, refused = str(squared), f"{squared} holds a network that is not minigpt's GPT: Squared; "
    actions: list[Callable[[], Any]] = [
        lambda: minigpt.load(squared),
        lambda: minigpt.load(squared, precision="bfloat16"),
        lambda: minigpt.evaluate(squared, "my.txt"),
        lambda: minigpt.train("my.txt", init=run, steps=2),
        lambda: resume(squared, steps=20),
    ]
    for action in actions:
        with pytest.raises(UserError, match=refused):
            action()

    before = sorted(path for path in Path().rglob("*") if "cache" not in path.parts)
    for command in (
        ["generate", "Once", "--run", run],
        ["generate", "Once"],
        ["page", run],
        ["serve", run],
        ["export", run],
        ["export", run, "--to", "gguf"],
        ["evaluate", run, "my.txt"],
        ["train", "my.txt", "--init", run, "--steps", "2"],
        ["train", "--resume", "--out", run, "--steps", "20"],
    ):
        assert main(command) == 2, command
        assert refused in capsys.readouterr().err, command
    assert before == sorted(path for path in Path().rglob("*") if "cache" not in path.parts)
    assert ", Squared, " in repr(minigpt.Run(squared))


def test_the_weights_of_another_network_are_saved_and_come_back(tmp_path: Path) -> None:
    model, file = Squared(GPTConfig(11, tie_embeddings=True, **SHAPE)), tmp_path / WEIGHTS
    randomised(model).register_buffer("count", torch.arange(3))
    save_weights(model, file)
    assert read_network(file) == "Squared"
    twin = Squared(model.config)
    twin.register_buffer("count", torch.zeros(3, dtype=torch.int64))
    missing, unexpected = twin.load_state_dict(load_file(file), strict=False)
    assert (missing, unexpected) == (["head.weight"], [])
    twin.eval()
    ids = torch.arange(8)[None]
    assert torch.equal(twin(ids), model(ids)) and torch.equal(twin.count, torch.arange(3))


def learner(model: nn.Module) -> Learner:
    config = TrainConfig()
    return Learner.of(model, make_optimizers(model, config), config)


def test_a_checkpoint_continues_the_network_that_it_is_of_and_no_other(tmp_path: Path) -> None:
    config = GPTConfig(11, **SHAPE)
    for kind, other in ((Squared, GPT), (GPT, Squared)):
        model = randomised(kind(config))
        save_checkpoint(tmp_path, learner(model), TrainingState())
        with pytest.raises(UserError, match=f"of {kind.__name__}, not of {other.__name__}"):
            load_checkpoint(tmp_path, learner(other(config)))
        same = kind(config)
        load_checkpoint(tmp_path, learner(same))
        assert all(map(torch.equal, same.parameters(), model.parameters()))


def test_samples_during_the_training_of_another_network_are_written(squared: Path) -> None:
    assert len(texts_of_evaluations(squared)) == 2
