"""What several test files share: a text to train on, and a tiny run trained on it."""

import gc
import getpass
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import HealthCheck, settings

import minigpt
from data.base.pack import write_base
from minigpt.recipe import run as recipe_run
from minigpt.recipe import texts_while_learning as samples
from minigpt.recipe.machine import Speed
from minigpt.runs import base
from minigpt.runs.folder import WEIGHTS
from minigpt.tokenizer import END_OF_TEXT
from minigpt.tokenizer.chunked_encoding import GPT2_PATTERN
from minigpt.training import reports

from .browser import running_chromium
from .data.chats.made import some_chat, some_script
from .forks import Forks

WORDS = "the fox asked a crow for bread and said no then flew to old mill by night".split()
TINY: dict[str, Any] = {
    "emb_dim": 16,
    "num_layers": 1,
    "num_heads": 2,
    "context_length": 16,
    "vocab_size": 300,
    "batch_size": 4,
    "steps": 8,
    "num_evals": 2,
    "device": "cpu",
    "compile": "off",
    "precision": "float32",
}
# Before the tests hide them
real_base_folder = base.base_folder
real_draw_losses = reports.draw_losses
real_say_copied = recipe_run.say_copied
LENGTHS_OF_TEXTS = {name: getattr(samples, name) for name in ("_TOKENS", "_TOKENS_OF_EVALUATION")}
unix_only = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")


def some_text(words: int = 600, seed: int = 0) -> str:
    """Random words, ten a line: a little to learn, and much to learn by heart."""
    draw = random.Random(seed)
    lines = [" ".join(draw.choices(WORDS, k=10)) for _ in range(words // 10)]
    return "\n".join(lines) + "\n"


def train_tiny(file: str | Path = "my.txt", out: str | Path | None = None, **changes: Any) -> Path:
    """A run of a few steps of a tiny model, through the public function."""
    return minigpt.train(file, out=out, **tiny_settings(**changes))


def tiny_settings(**changes: Any) -> dict[str, Any]:
    """The settings of a tiny model; other tokenizers than a bpe have a size of their own."""
    settings = TINY | changes
    if settings.get("tokenizer", "bpe") != "bpe":
        del settings["vocab_size"]
    return settings


def move_into(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MINIGPT_CACHE", str(folder / "cache"))
    (folder / "my.txt").write_text(some_text())
    return folder


def pytest_collection_finish() -> None:
    """What has been imported is there to the end: no collection of garbage looks at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def signals_of_a_terminal() -> Iterator[None]:
    """Ctrl-C and a terminal that is closed act as usual, also where the tests were started with
    them ignored, as in the background or by nohup; the processes that they start inherit it."""
    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler}
    if os.name != "nt":  # Windows has no SIGHUP
        usual[signal.SIGHUP] = signal.SIG_DFL
    previous = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in previous.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def activated() -> Iterator[None]:
    """The environment is activated, so that commands that are shown need no path."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session", autouse=True)
def known_speed() -> Iterator[None]:
    """The machine is not measured anew for each of the runs; processes of their own do measure."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        speed = Speed(flops=6e10, start=2e-3)
        monkeypatch.setattr("minigpt.recipe.choose_plan.measure_speed", lambda *_: speed)
        monkeypatch.setattr("minigpt.training.precision.gain_of_bfloat16", lambda: 0.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def short_ends() -> Iterator[None]:
    """A training writes little, and at its end draws no picture and does not look for copies, which
    take longer than a tiny training, unless a test asks for it; processes of their own do."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(reports, "draw_losses", lambda *_, **__: None)
        monkeypatch.setattr(recipe_run, "say_copied", lambda *_: None)
        for length in LENGTHS_OF_TEXTS:
            monkeypatch.setattr(samples, length, 8)
        yield


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Nobody waits until a file lies on the disk, as each of the many small ones of a training
    does; processes of their own do."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def drawn_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training draws its losses, as it does for everybody."""
    monkeypatch.setattr(reports, "draw_losses", real_draw_losses)


@pytest.fixture
def usual_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training writes as much as it does for everybody."""
    for length, tokens in LENGTHS_OF_TEXTS.items():
        monkeypatch.setattr(samples, length, tokens)


@pytest.fixture
def told_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training says how much of what it writes is copied, as it does for everybody."""
    monkeypatch.setattr(recipe_run, "say_copied", real_say_copied)


@pytest.fixture(scope="session", autouse=True)
def no_base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The base that comes with minigpt is hidden from tests that do not ask for it or for a tiny
    one: a plan does not choose it, and nobody writes with it."""
    nowhere = tmp_path_factory.mktemp("no-base") / "base"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(base, "base_folder", lambda: nowhere)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> Iterator[None]:
    """What is compiled is kept from test to test, each of which has a cache folder of its own."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = Path(tempfile.gettempdir()) / f"minigpt-tests-{getpass.getuser()}"
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
        yield


@pytest.fixture
def known_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The forecast has been tried on texts like those of the tests, which are made of few words."""
    for place in ("plan", "resume"):
        monkeypatch.setattr(f"minigpt.recipe.{place}.is_like_those_tried", lambda *_: True)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: empty but for my.txt."""
    return move_into(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """What starts processes that need not load torch: `forks.start(["-m", "minigpt", ...])`."""
    server = Forks()
    yield server
    server.close()


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run with a bpe tokenizer, to be read only."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = move_into(tmp_path_factory.mktemp("tiny"), monkeypatch)
        return folder / train_tiny(steps=30, num_evals=3)


@pytest.fixture(scope="session")
def letters_run(tiny_run: Path) -> Path:
    """A run of characters beside `tiny_run`, on the same text, to be read only."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = tiny_run.parents[1]
        monkeypatch.chdir(folder)
        monkeypatch.setenv("MINIGPT_CACHE", str(folder / "cache"))
        return folder / train_tiny(out="letters", tokenizer="char", context_length=24)


@pytest.fixture(scope="session")
def talking_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that learned from a chat of Anna and Otto, to be read only."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = move_into(tmp_path_factory.mktemp("talking"), monkeypatch)
        (folder / "chat.txt").write_text(some_chat(300))
        return folder / train_tiny("chat.txt", steps=60, emb_dim=32, context_length=64, seed=1)


@pytest.fixture(scope="session")
def play_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that learned from a play of ANNA and OTTO as it is, to be read only."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = move_into(tmp_path_factory.mktemp("play"), monkeypatch)
        (folder / "play.txt").write_text(some_script(300))
        return folder / train_tiny("play.txt", steps=60, emb_dim=32, context_length=64, seed=1)


@pytest.fixture
def tiny_base(
    tiny_run: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of a base made from `tiny_run`, which every command finds in the place of the one
    that comes with minigpt. It is not in the current folder, and a test may damage it."""
    folder = tmp_path_factory.mktemp("tiny-base") / base.BASE
    write_base(tiny_run, folder)
    monkeypatch.setattr(base, "base_folder", lambda: folder)
    return folder


@pytest.fixture
def real_base(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the base that comes with minigpt; without it the test is skipped."""
    folder = real_base_folder()
    if not (folder / WEIGHTS).exists():
        pytest.skip(f"the base is not there: {folder}")
    monkeypatch.setattr(base, "base_folder", lambda: folder)
    return folder


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser of this process; `browser.new_context` opens a fresh context of it."""
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def small_gpt2(monkeypatch: pytest.MonkeyPatch) -> tiktoken.Encoding:
    """In the place of tiktoken's gpt2, which would have to be downloaded: its pattern, its special
    token and its bytes in another order, but few merges."""
    tokens = [bytes([byte]) for byte in reversed(range(256))]
    tokens += [b"th", b"the", b" the", b"lo", b"Hel", b"Hello", b"He", b"wor", b"\n\n", b"or"]
    encoding = tiktoken.Encoding(
        "gpt2",
        pat_str=GPT2_PATTERN,
        mergeable_ranks={token: rank for rank, token in enumerate(tokens)},
        special_tokens={END_OF_TEXT: len(tokens)},
    )
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "gpt2", encoding)
    return encoding


# How many inputs a random draw happens to filter out says nothing about the code.
settings.register_profile("ours", suppress_health_check=[HealthCheck.filter_too_much])
settings.load_profile("ours")
