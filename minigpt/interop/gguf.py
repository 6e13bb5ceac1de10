"""GGUF files, the format of llama.cpp and the programs built on it; the `gguf` package writes them.

The file holds the tokenizer too. llama.cpp has its own copies of GPT-2's and SmolLM's patterns, so
that a BPE with one of them gives the same ids. It has no character tokenizer, but a BPE whose
merges only join the bytes of one character does the same. With it, llama.cpp leaves out characters
that we refuse.
"""

import errno
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import UserError
from ..config import PLAIN, GPTConfig, SampleConfig
from ..config.parts.norms import NORMS, NamedArrays
from ..config.parts.positions import POSITIONS
from ..system.platforms import how_to_install
from ..system.safetensors_files import Array
from ..tokenizer import END_OF_TEXT, CharacterTokenizer, Tokenizer
from ..tokenizer.bpe import bytes_to_printable
from ..tokenizer.chunked_encoding import GPT2_PATTERN, PATTERNS, word_pattern
from .architectures import architecture_of
from .chat import ChatFormat
from .mapping import numbered, numbered_modules, stacked

# llama.cpp's names of the patterns that both it and we know.
_PATTERNS = {GPT2_PATTERN: "gpt-2", PATTERNS["smollm"]: "smollm"}


def write_gguf(
    path: Path,
    config: GPTConfig,
    weights: NamedArrays,
    tokenizer: Tokenizer,
    name: str,
    *,
    usual: SampleConfig = PLAIN,
    chat: ChatFormat | None = None,
) -> None:
    """Write a model and its tokenizer as one file, in float32, with what is `usual` when it is
    sampled and the template of `chat` if the model can be talked with; `name` is the model's name
    in the file.

    llama.cpp's `llama-quantize` makes it smaller.
    """
    try:
        import gguf
    except ImportError:
        raise UserError(f"GGUF needs the gguf package: {how_to_install('gguf')}") from None
    architecture = architecture_of(config)
    writer = gguf.GGUFWriter(path, architecture.name)
    writer.add_name(name)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    _add_sizes(writer, config)
    _add_tokenizer(writer, tokenizer)
    _add_sampling(writer, usual, config.context_length)
    if chat is not None:
        writer.add_chat_template(chat.jinja())

    kind = next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == architecture.name)
    names = gguf.get_tensor_name_map(kind, config.num_layers)
    for module, i in numbered_modules(config):
        gguf_name = names.get_name(numbered(module.theirs, i))
        assert gguf_name is not None  # the package knows every tensor of these architectures
        is_interleaved = module.ours[0] in architecture.interleaved
        for suffix, array in stacked(weights, module, i).items():
            rows = interleaved(array, config.head_size) if is_interleaved else array
            writer.add_tensor(f"{gguf_name}.{suffix}", np.ascontiguousarray(rows))

    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    except OSError as error:
        if error.errno is None:  # numpy says how many numbers were written, not what failed
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from None
        raise


def interleaved(array: Array, head_dim: int) -> Array:
    """The rows of each head in the order that llama.cpp wants for its Llama: rows i and
    i + head_dim / 2, which rotary positions turn together, stand side by side.

    Args:
        array: ``(heads * head_dim, d_in)``.
        head_dim: rows of a head.
    """
    pairs = array.reshape(-1, 2, head_dim // 2, array.shape[-1])  # (heads, 2, head_dim / 2, d_in)
    return pairs.swapaxes(1, 2).reshape(array.shape)


def _add_sizes(writer: Any, config: GPTConfig) -> None:
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.emb_dim)
    writer.add_block_count(config.num_layers)
    writer.add_feed_forward_length(config.ff_dim)
    writer.add_head_count(config.num_heads)

    epsilon = NORMS[config.norm].gguf_epsilon
    for name, value in {
        epsilon: config.norm_eps,
        **POSITIONS[config.positions].gguf(config),
    }.items():
        getattr(writer, f"add_{name}")(value)


def _add_sampling(writer: Any, usual: SampleConfig, context_length: int) -> None:
    """What llama.cpp takes where its user gives no other value; a file has no place for the
    penalties on repeated passages, presence and frequency (see :func:`sampling_options`)."""
    # By default its penalties look back at 64 tokens only.
    writer.add_int32("general.sampling.penalty_last_n", context_length)
    writer.add_float32("general.sampling.temp", usual.temperature)
    writer.add_int32("general.sampling.top_k", usual.top_k or 0)
    writer.add_float32("general.sampling.top_p", usual.top_p or 1.0)
    writer.add_float32("general.sampling.min_p", usual.min_p or 0.0)
    writer.add_float32("general.sampling.penalty_repeat", usual.repetition_penalty)


def sampling_options(usual: SampleConfig) -> str:
    """The options with which llama.cpp samples as is usual with a model: beside those of each run,
    the ones that its file has no place for."""
    options = {
        "--temp": usual.temperature,
        "--dry-multiplier": usual.dry_multiplier,
        "--dry-base": usual.dry_base,
        "--dry-allowed-length": usual.dry_allowed_length,
    }
    if usual.presence_penalty:
        options["--presence-penalty"] = usual.presence_penalty
    if usual.frequency_penalty:
        options["--frequency-penalty"] = usual.frequency_penalty
    return " ".join(f"{name} {value:g}" for name, value in options.items())


class _Vocabulary(NamedTuple):
    """A tokenizer as llama.cpp's byte-level BPE."""

    ids: dict[str, int]  # of the tokens
    merges: list[tuple[str, str]]  # the first one first
    special: set[str]  # tokens
    pattern: str  # the name by which llama.cpp knows how a text is cut into words


def _add_tokenizer(writer: Any, tokenizer: Tokenizer) -> None:
    import gguf

    vocabulary = _vocabulary(tokenizer)
    tokens = sorted(vocabulary.ids, key=lambda token: vocabulary.ids[token])
    types = [
        gguf.TokenType.CONTROL if token in vocabulary.special else gguf.TokenType.NORMAL
        for token in tokens
    ]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(vocabulary.pattern)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([f"{left} {right}" for left, right in vocabulary.merges])
    writer.add_bos_token_id(tokenizer.end_of_text)
    writer.add_eos_token_id(tokenizer.end_of_text)
    writer.add_add_bos_token(False)
    if tokenizer.end_of_turn is not None:
        writer.add_eot_token_id(tokenizer.end_of_turn)


def _vocabulary(tokenizer: Tokenizer) -> _Vocabulary:
    if isinstance(tokenizer, CharacterTokenizer):
        return _characters(tokenizer)

    data = json.loads(tokenizer.to_json())
    pattern = _PATTERNS.get(word_pattern(data["pre_tokenizer"]) or "")
    added = [token["content"] for token in data["added_tokens"] if not token["special"]]
    if pattern is None or data["normalizer"] or added or data["model"]["ignore_merges"]:
        raise UserError(
            "this tokenizer has a pattern other than GPT-2's or SmolLM's, a normalizer, added "
            "tokens or ignore_merges; llama.cpp would give other token ids; export it with --to hf"
        )

    special = {token["content"] for token in data["added_tokens"]}
    return _Vocabulary(data["model"]["vocab"], data["model"]["merges"], special, pattern)


def _characters(tokenizer: CharacterTokenizer) -> _Vocabulary:
    """A BPE whose merges only join the bytes of one character."""
    written = [bytes_to_printable(character.encode()) for character in tokenizer.characters]
    ids = {token: i for i, token in enumerate(written)}
    ids[END_OF_TEXT] = tokenizer.end_of_text

    merges = {(token[:i], token[i]) for token in written for i in range(1, len(token))}
    # llama.cpp demands a merge even where all characters are ASCII; this one is never UTF-8.
    never = (bytes_to_printable(b"\xff"), bytes_to_printable(b"\xff"))
    return _Vocabulary(ids, [never, *sorted(merges)], {END_OF_TEXT}, pattern="gpt-2")
