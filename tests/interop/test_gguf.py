"""GGUF files, read back with the gguf package: every tensor, every size, every token.

What llama.cpp makes of them is in test_llama_cpp.py, where it can be built.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tokenizers
import torch

from minigpt import SampleConfig, UserError
from minigpt.interop.gguf import sampling_options, write_gguf
from minigpt.tokenizer import Tokenizer, load_tokenizer

from .examples import CONFIGS, byte_pairs, characters, random_model, weights_of, with_gaps


def write(folder: Path, name: str, tokenizer: Tokenizer | None = None) -> Any:
    """The reader of a file for one of CONFIGS."""
    tokenizer = tokenizer or byte_pairs()
    model = random_model(name, vocab_size=tokenizer.vocab_size)
    write_gguf(folder / "model.gguf", model.config, weights_of(model), tokenizer, "fables")
    return gguf.GGUFReader(folder / "model.gguf")


def fields(reader: Any) -> dict[str, Any]:
    """All metadata by key."""
    return {key: field.contents() for key, field in reader.fields.items()}


def tensors(reader: Any) -> dict[str, np.ndarray]:
    """All tensors by name, in float32."""
    return {t.name: gguf.quants.dequantize(t.data, t.tensor_type).copy() for t in reader.tensors}


def permuted_by_llama_cpp(weights: np.ndarray, n_head: int) -> np.ndarray:
    """The order of rows that llama.cpp's own converter gives (`LlamaModel.permute`)."""
    rows = weights.reshape(n_head, 2, weights.shape[0] // n_head // 2, *weights.shape[1:])
    return rows.swapaxes(1, 2).reshape(weights.shape)


def test_a_full_disk_is_told_by_its_name(tmp_path: Path) -> None:
    """The system cuts the file off in the middle of its weights."""
    resource = pytest.importorskip("resource", reason="Windows limits no files")
    write(tmp_path, "gpt2")
    size = (tmp_path / "model.gguf").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
    try:
        with pytest.raises(OSError, match="No space left on device") as failed:
            write(tmp_path, "gpt2")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert failed.value.filename == str(tmp_path / "model.gguf")


def test_a_file_says_how_it_is_sampled(tmp_path: Path) -> None:
    model = random_model("qwen3")
    usual = SampleConfig(temperature=0.7, top_k=9)
    write_gguf(tmp_path / "a.gguf", model.config, weights_of(model), byte_pairs(), "a", usual=usual)
    found = fields(gguf.GGUFReader(tmp_path / "a.gguf"))
    expected = {
        "temp": 0.7,
        "top_k": 9,
        "top_p": 1.0,
        "penalty_last_n": model.config.context_length,
    }
    sampling = {name: found[f"general.sampling.{name}"] for name in expected}
    assert sampling == pytest.approx(expected)


def test_the_options_name_what_a_file_has_no_place_for() -> None:
    dry = "--temp 0.7 --dry-multiplier 0 --dry-base 1.75 --dry-allowed-length 2"
    usual = SampleConfig(temperature=0.7)
    assert sampling_options(usual) == dry
    usual = SampleConfig(temperature=0.7, presence_penalty=0.5, frequency_penalty=-0.25)
    assert sampling_options(usual) == f"{dry} --presence-penalty 0.5 --frequency-penalty -0.25"


@pytest.mark.parametrize("name", CONFIGS)
def test_the_sizes_are_those_of_the_config(name: str, tmp_path: Path) -> None:
    config, found = random_model(name).config, fields(write(tmp_path, name))
    arch = found["general.architecture"]
    assert arch == config.preset and found["general.name"] == "fables"
    expected: dict[str, Any] = {
        "vocab_size": config.vocab_size,
        "context_length": config.context_length,
        "embedding_length": config.emb_dim,
        "block_count": config.num_layers,
        "feed_forward_length": config.ff_dim,
        "attention.head_count": config.num_heads,
    }
    if config.positions == "rotary":
        expected |= {
            "attention.head_count_kv": config.kv_heads,
            "attention.key_length": config.head_size,
            "attention.value_length": config.head_size,
            "attention.layer_norm_rms_epsilon": pytest.approx(config.norm_eps),
            "rope.freq_base": config.rotary_base,
            "rope.dimension_count": config.head_size,
        }
    else:
        expected["attention.layer_norm_epsilon"] = pytest.approx(config.norm_eps)
    assert {key: found[f"{arch}.{key}"] for key in expected} == expected


@pytest.mark.parametrize("name", CONFIGS)
def test_every_parameter_is_there_in_float32(name: str, tmp_path: Path) -> None:
    model, found = random_model(name), tensors(write(tmp_path, name))
    stems = {key.removesuffix(".weight").removesuffix(".bias") for key in found}
    known = {re.sub(r"^blk\.\d+\.", "blk.{bid}.", stem) for stem in stems}
    assert known <= set(gguf.TENSOR_NAMES.values())
    state = model.state_dict()
    assert np.array_equal(found["token_embd.weight"], state["token_embedding.weight"])
    assert np.array_equal(
        found["blk.1.ffn_down.weight"], state["blocks.1.feed_forward.out_proj.weight"]
    )
    assert ("output.weight" in found) == (not model.config.tie_embeddings)
    if model.config.positions == "rotary":
        for ours, theirs in (("W_query", "attn_q"), ("W_key", "attn_k"), ("W_value", "attn_v")):
            expected = state[f"blocks.0.attention.{ours}.weight"].numpy()
            if model.config.preset == "llama" and ours != "W_value":
                heads = len(expected) // model.config.head_size
                expected = permuted_by_llama_cpp(expected, heads)
            assert np.array_equal(found[f"blk.0.{theirs}.weight"], expected)
    else:
        parts = [state[f"blocks.0.attention.W_{x}.weight"] for x in ("query", "key", "value")]
        assert np.array_equal(found["blk.0.attn_qkv.weight"], torch.cat(parts))
    total = sum(p.numel() for p in model.parameters())
    assert sum(array.size for array in found.values()) == total


def test_the_tokenizer_is_gpt2s_kind_with_our_tokens(tmp_path: Path) -> None:
    tokenizer = byte_pairs()
    found = fields(write(tmp_path, "qwen3"))
    assert (found["tokenizer.ggml.model"], found["tokenizer.ggml.pre"]) == ("gpt2", "gpt-2")
    tokens = found["tokenizer.ggml.tokens"]
    assert len(tokens) == tokenizer.vocab_size and tokens[tokenizer.end_of_text] == "<|endoftext|>"
    assert tokens[tokenizer.encode(" the")[0]] == "Ġthe"
    assert "Ġt he" in found["tokenizer.ggml.merges"]
    assert found["tokenizer.ggml.eos_token_id"] == tokenizer.end_of_text
    kinds = found["tokenizer.ggml.token_type"]
    assert [i for i, kind in enumerate(kinds) if kind == gguf.TokenType.CONTROL] == [
        tokenizer.end_of_text
    ]
    assert found["tokenizer.ggml.add_bos_token"] is False


def test_characters_become_bytes_that_merge_to_characters_only(tmp_path: Path) -> None:
    tokenizer = characters()
    found = fields(write(tmp_path, "qwen3", tokenizer=tokenizer))
    tokens, merges = found["tokenizer.ggml.tokens"], found["tokenizer.ggml.merges"]
    assert len(tokens) == tokenizer.vocab_size
    assert tokens[tokenizer.encode("\n")[0]] == "Ċ"
    assert tokens[tokenizer.encode("é")[0]] == "Ã©" and "Ã ©" in merges
    assert all(len(merge.replace(" ", "")) <= 4 for merge in merges)


def test_a_tokenizer_that_llama_cpp_would_not_follow_is_refused(tmp_path: Path) -> None:
    file, refused = tmp_path / "tokenizer.json", [with_gaps()]
    normalizer, added = (tokenizers.Tokenizer.from_str(byte_pairs().to_json()) for _ in range(2))
    normalizer.normalizer = tokenizers.normalizers.NFC()
    added.add_tokens(["<think>"])
    ignoring = json.loads(byte_pairs().to_json())
    ignoring["model"] |= {"ignore_merges": True, "merges": ignoring["model"]["merges"][:-1]}
    for content in (normalizer.to_str(), added.to_str(), json.dumps(ignoring)):
        file.write_text(content)
        refused.append(load_tokenizer(file))
    for tokenizer in refused:
        with pytest.raises(UserError, match=r"pattern other than GPT-2's.*--to hf"):
            write(tmp_path, "gpt2", tokenizer=tokenizer)
    assert not (tmp_path / "model.gguf").exists()


def test_without_the_gguf_package_the_user_is_told_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UserError, match=r'pip install "minigpt-text\[gguf\]"'):
        write(tmp_path, "gpt2")
