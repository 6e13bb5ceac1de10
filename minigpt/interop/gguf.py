"""A GGUF file, the format of llama.cpp and what is built on it; written by the `gguf` package.

The tokenizer goes with it. llama.cpp cuts a text into words by its own copy of GPT-2's pattern, so
that a BPE with that pattern encodes alike. It knows no character tokenizer, but a BPE whose only
merges are the bytes of a character is one: every character of the vocabulary gets the same id as
here. A character outside of it, which we refuse, llama.cpp leaves out of the text.
"""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from .. import UserError
from ..model import GPT
from ..tokenizer import END_OF_TEXT, CharacterTokenizer, Tokenizer
from ..tokenizer.bpe import bytes_to_printable
from ..tokenizer.chunked_encoding import GPT2_PATTERN
from .architectures import architecture_of
from .weights import stacked

Dtype = Literal["float32", "float16", "q8_0"]


def check_gguf(tokenizer: Tokenizer) -> None:
    """Refuse what cannot be written, before anything is.

    Raises:
        UserError: if the gguf package is missing, or llama.cpp would encode texts otherwise.
    """
    try:
        import gguf  # noqa: F401
    except ImportError:
        raise UserError("GGUF needs the gguf package: pip install 'minigpt[gguf]'") from None
    _vocabulary(tokenizer)


def write_gguf(path: Path, model: GPT, tokenizer: Tokenizer, name: str, dtype: Dtype) -> None:
    """Write a model and its tokenizer as one GGUF file.

    Args:
        path: of the file.
        model: to write.
        tokenizer: its own.
        name: what the file calls the model.
        dtype: of the matrices. What is not a matrix, and positions, stay float32; a matrix whose
            rows are no multiple of 32 long cannot be q8_0 and becomes float16.

    Raises:
        UserError: as :func:`check_gguf`.
    """
    check_gguf(tokenizer)
    import gguf

    config = model.config
    architecture = architecture_of(config)
    writer = gguf.GGUFWriter(path, architecture.model_type)
    kinds = {
        "float32": gguf.LlamaFileType.ALL_F32,
        "float16": gguf.LlamaFileType.MOSTLY_F16,
        "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    }
    writer.add_name(name)
    writer.add_file_type(kinds[dtype])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    _add_shape(writer, model)
    _add_tokenizer(writer, tokenizer)
    kind = next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == architecture.model_type)
    names = gguf.get_tensor_name_map(kind, config.num_layers)
    for theirs, tensor, _ in stacked(model.state_dict(), config):
        gguf_name = names.get_name(theirs, try_suffixes=(".weight", ".bias"))
        assert gguf_name is not None  # the package knows both architectures whole
        _add_tensor(writer, gguf_name, tensor, dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: Any, model: GPT) -> None:
    config = model.config
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.emb_dim)
    writer.add_block_count(config.num_layers)
    writer.add_feed_forward_length(config.ff_dim)
    writer.add_head_count(config.num_heads)
    if config.architecture == "gpt2":
        writer.add_layer_norm_eps(config.norm_eps)
        return
    writer.add_head_count_kv(config.kv_heads)
    writer.add_key_length(config.head_size)
    writer.add_value_length(config.head_size)
    writer.add_rope_freq_base(config.rotary_base)
    writer.add_layer_norm_rms_eps(config.norm_eps)


def _add_tokenizer(writer: Any, tokenizer: Tokenizer) -> None:
    import gguf

    vocab, merges, special = _vocabulary(tokenizer)
    tokens = sorted(vocab, key=lambda token: vocab[token])
    kinds = [
        gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens
    ]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([f"{left} {right}" for left, right in merges])
    writer.add_bos_token_id(tokenizer.end_of_text)
    writer.add_eos_token_id(tokenizer.end_of_text)
    writer.add_add_bos_token(False)


def _vocabulary(tokenizer: Tokenizer) -> tuple[dict[str, int], list[tuple[str, str]], set[str]]:
    """Tokens with their ids, pairs to merge, and which tokens are special, for llama.cpp's BPE."""
    if isinstance(tokenizer, CharacterTokenizer):
        written = [bytes_to_printable(character.encode()) for character in tokenizer.characters]
        vocab = {token: i for i, token in enumerate(written)}
        merges = {(token[:i], token[i]) for token in written for i in range(1, len(token))}
        # llama.cpp insists on a merge, where all characters are ASCII too; no UTF-8 has this one.
        never = (bytes_to_printable(b"\xff"), bytes_to_printable(b"\xff"))
        end = {END_OF_TEXT: tokenizer.end_of_text}
        return vocab | end, [never, *sorted(merges)], {END_OF_TEXT}
    data = json.loads(tokenizer.to_json())
    pattern = data["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    added = [token["content"] for token in data["added_tokens"] if not token["special"]]
    if pattern != GPT2_PATTERN or data["normalizer"] or added:
        raise UserError(
            "this tokenizer has a pattern other than GPT-2's, a normalizer or added tokens, which "
            "llama.cpp would not follow; export it with --to hf"
        )
    special = {token["content"] for token in data["added_tokens"]}
    return data["model"]["vocab"], data["model"]["merges"], special


def _add_tensor(writer: Any, name: str, tensor: Tensor, dtype: Dtype) -> None:
    import gguf

    kind = gguf.GGMLQuantizationType.F32
    if tensor.dim() == 2 and name != "position_embd.weight" and dtype != "float32":
        block = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType.Q8_0][0]
        fits = dtype == "q8_0" and tensor.shape[1] % block == 0
        kind = gguf.GGMLQuantizationType.Q8_0 if fits else gguf.GGMLQuantizationType.F16
    array = np.ascontiguousarray(tensor.detach().cpu().float().numpy())
    writer.add_tensor(name, gguf.quantize(array, kind), raw_dtype=kind)
