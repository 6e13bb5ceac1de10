"""What we write as GGUF, llama.cpp runs alike: the same ids for a text, the same greedy text."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from minigpt import GPT, Writer
from minigpt.data.dialogue import Dialogue
from minigpt.generation.torch_gpt import glass_of
from minigpt.interop.chat import ChatFormat
from minigpt.interop.gguf import write_gguf
from minigpt.tokenizer import Tokenizer

from .examples import CONFIGS, HARD_TEXT, PROMPT, byte_pairs, characters, random_model, weights_of
from .test_chat import MESSAGES, NAMES, ODD, exported, in_turns, served
from .test_tokenizer_import import SMOLLM, tokenizer_of

pytestmark = pytest.mark.llama
llama_cpp = pytest.importorskip(
    "cyllama.llama.llama_cpp", reason="make installs what these tests need"
)

FLOAT32 = 0  # of the types of a tensor
OFF = 0


class Llama:
    """A model in llama.cpp, which reads it from a file."""

    def __init__(
        self, file: Path, model: GPT, tokenizer: Tokenizer, chat: ChatFormat | None = None
    ):
        write_gguf(file, model.config, weights_of(model), tokenizer, "a test", chat=chat)
        llama_cpp.disable_logging()
        self._model = llama_cpp.LlamaModel(str(file), verbose=False)
        self._vocab = self._model.get_vocab()
        self._context_length = model.config.context_length

    @property
    def chat_template(self) -> str:
        """The template that it would write a talk with."""
        return self._model.get_default_chat_template()

    def encode(self, text: str, *, has_special: bool = False) -> list[int]:
        """The ids of a text, in which the names of special tokens may be these tokens."""
        return self._vocab.tokenize(text, False, has_special)

    def decode(self, ids: list[int]) -> str:
        """The text of some ids, special tokens too."""
        return self._vocab.detokenize(ids, len(HARD_TEXT.encode()) + 1, False, True)

    def is_end(self, token: int) -> bool:
        """Whether a text or an answer ends with a token."""
        return self._vocab.is_eog(token)

    def greedy(self, prompt: list[int]) -> Iterator[int]:
        """The likeliest next tokens, until the text ends."""
        settings = llama_cpp.LlamaContextParams()
        settings.n_ctx = self._context_length
        settings.n_threads = 1
        settings.n_threads_batch = 1
        settings.flash_attn_type = OFF  # it computes in 16 bits
        settings.type_k = FLOAT32
        settings.type_v = FLOAT32
        context = llama_cpp.LlamaContext(self._model, settings, False)
        sampler = llama_cpp.LlamaSampler(llama_cpp.LlamaSamplerChainParams())
        sampler.add_greedy()
        context.decode(llama_cpp.llama_batch_get_one(prompt))
        position = len(prompt)
        while not self.is_end(token := sampler.sample(context, -1)):
            yield token
            context.decode(llama_cpp.llama_batch_get_one([token], position))
            position += 1


def llama(folder: Path, name: str, tokenizer: Tokenizer) -> tuple[Llama, Writer]:
    """The same model in llama.cpp and here."""
    model = random_model(name, vocab_size=tokenizer.vocab_size)
    return Llama(folder / "model.gguf", model, tokenizer), Writer(glass_of(model), tokenizer)


@pytest.mark.parametrize("name", CONFIGS)
def test_greedy_text_is_the_same(name: str, tmp_path: Path) -> None:
    theirs, writer = llama(tmp_path, name, byte_pairs())
    ours = writer.generate(PROMPT, temperature=0, max_new_tokens=100)
    found = list(islice(theirs.greedy(theirs.encode(PROMPT)), 100))
    assert PROMPT + writer.tokenizer.decode(found) == ours


def smollms() -> Tokenizer:
    return tokenizer_of(SMOLLM["all bytes"])


@pytest.mark.parametrize("make", [byte_pairs, characters, smollms])
def test_a_hard_text_has_the_same_ids(make: Callable[[], Tokenizer], tmp_path: Path) -> None:
    theirs, writer = llama(tmp_path, "qwen3", make())
    ids = writer.tokenizer.encode(HARD_TEXT)
    assert theirs.encode(HARD_TEXT) == ids
    assert theirs.decode(ids) == HARD_TEXT


def test_an_unknown_character_is_left_out(tmp_path: Path) -> None:
    theirs, writer = llama(tmp_path, "qwen3", characters())
    assert theirs.encode("The € crow") == writer.tokenizer.encode("The  crow")


def test_a_talk_has_the_same_ids(tmp_path: Path) -> None:
    """Where transformers renders the template that the file holds."""
    tokenizer = in_turns()
    dialogue = Dialogue(NAMES)
    model = random_model("qwen3", vocab_size=tokenizer.vocab_size)
    chat = ChatFormat(dialogue, tokenizer)
    theirs = Llama(tmp_path / "model.gguf", model, tokenizer, chat)
    renderer = exported(tmp_path, tokenizer, dialogue)
    assert theirs.chat_template == renderer.chat_template

    talks: list[list[Any]] = [MESSAGES, *([{"role": "user", "content": odd}] for odd in ODD)]
    for messages in talks:
        text = renderer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        assert theirs.encode(text, has_special=True) == served(messages, tokenizer, dialogue)

    ends = {token for token in range(tokenizer.vocab_size) if theirs.is_end(token)}
    assert ends == {tokenizer.end_of_text, tokenizer.end_of_turn}
