"""Our two architectures in transformers' terms: configs and weights, both ways.

`gpt2` is transformers' GPT2LMHeadModel, `qwen3` its Qwen3ForCausalLM. Two tables pair the names,
and the functions below follow them. The names in GGUF files derive from those of transformers.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import UserError
from ..config import GPTConfig, from_dict
from .safetensors_files import Array

Weights = Mapping[str, Array]

# GPT-2 keeps the matrices of these modules as (in, out).
_TRANSPOSED = re.compile(r"\.c_(attn|fc|proj)\.weight$")
# Older files also hold causal masks and tables of angles.
_NOT_WEIGHTS = re.compile(r"\.attn\.(masked_)?bias$|\.rotary_emb\.inv_freq$")


@dataclass(frozen=True)
class Architecture:
    """What transformers calls the parts of one of our architectures."""

    class_name: str
    keys: dict[str, str]  # field of GPTConfig -> key of their config.json
    defaults: dict[str, Any]  # what transformers takes for a key that is left out
    fixed: dict[str, tuple[Any, ...]]  # the values of a key that our model computes
    # Module of theirs -> those of ours, whose tensors it stacks; # is the number of the block.
    modules: dict[str, tuple[str, ...]]


GPT2 = Architecture(
    class_name="GPT2LMHeadModel",
    keys={
        "vocab_size": "vocab_size",
        "context_length": "n_positions",
        "emb_dim": "n_embd",
        "num_layers": "n_layer",
        "num_heads": "n_head",
        "hidden_dim": "n_inner",
        "dropout": "resid_pdrop",
        "attention_dropout": "attn_pdrop",
        "tie_embeddings": "tie_word_embeddings",
        "norm_eps": "layer_norm_epsilon",
    },
    defaults={
        "n_inner": None,
        "resid_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "tie_word_embeddings": True,
        "layer_norm_epsilon": 1e-5,
    },
    fixed={
        "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "add_cross_attention": (False,),
    },
    modules={
        "transformer.wte": ("token_embedding",),
        "transformer.wpe": ("position_embedding",),
        "transformer.h.#.ln_1": ("blocks.#.attention_norm",),
        "transformer.h.#.attn.c_attn": (
            "blocks.#.attention.W_query",
            "blocks.#.attention.W_key",
            "blocks.#.attention.W_value",
        ),
        "transformer.h.#.attn.c_proj": ("blocks.#.attention.out_proj",),
        "transformer.h.#.ln_2": ("blocks.#.feed_forward_norm",),
        "transformer.h.#.mlp.c_fc": ("blocks.#.feed_forward.W_in",),
        "transformer.h.#.mlp.c_proj": ("blocks.#.feed_forward.out_proj",),
        "transformer.ln_f": ("final_norm",),
        "lm_head": ("head",),
    },
)

QWEN3 = Architecture(
    class_name="Qwen3ForCausalLM",
    keys={
        "vocab_size": "vocab_size",
        "context_length": "max_position_embeddings",
        "emb_dim": "hidden_size",
        "num_layers": "num_hidden_layers",
        "num_heads": "num_attention_heads",
        "num_kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "hidden_dim": "intermediate_size",
        "dropout": "resid_pdrop",  # not a key of Qwen3: we read it again, others ignore it
        "attention_dropout": "attention_dropout",
        "tie_embeddings": "tie_word_embeddings",
        "rotary_base": "rope_theta",
        "norm_eps": "rms_norm_eps",
    },
    defaults={
        "num_key_value_heads": 32,
        "head_dim": 128,
        "resid_pdrop": 0.0,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
        "rope_theta": 10_000.0,
        "rms_norm_eps": 1e-6,
    },
    fixed={"hidden_act": ("silu",), "attention_bias": (False,), "use_sliding_window": (False,)},
    modules={
        "model.embed_tokens": ("token_embedding",),
        "model.layers.#.input_layernorm": ("blocks.#.attention_norm",),
        "model.layers.#.self_attn.q_proj": ("blocks.#.attention.W_query",),
        "model.layers.#.self_attn.k_proj": ("blocks.#.attention.W_key",),
        "model.layers.#.self_attn.v_proj": ("blocks.#.attention.W_value",),
        "model.layers.#.self_attn.q_norm": ("blocks.#.attention.query_norm",),
        "model.layers.#.self_attn.k_norm": ("blocks.#.attention.key_norm",),
        "model.layers.#.self_attn.o_proj": ("blocks.#.attention.out_proj",),
        "model.layers.#.post_attention_layernorm": ("blocks.#.feed_forward_norm",),
        "model.layers.#.mlp.gate_proj": ("blocks.#.feed_forward.W_gate",),
        "model.layers.#.mlp.up_proj": ("blocks.#.feed_forward.W_in",),
        "model.layers.#.mlp.down_proj": ("blocks.#.feed_forward.out_proj",),
        "model.norm": ("final_norm",),
        "lm_head": ("head",),
    },
)

ARCHITECTURES = {"gpt2": GPT2, "qwen3": QWEN3}  # the names of GPTConfig, transformers and GGUF


def architecture_of(config: GPTConfig) -> str:
    """The architecture of a model that other programs run; UserError if they run none like it."""
    if config.preset not in ARCHITECTURES:
        known = " and ".join(ARCHITECTURES)
        raise UserError(f"other programs run {known}; they do not run {config.kind}")
    return config.preset


# Configs


def config_to_huggingface(config: GPTConfig) -> dict[str, Any]:
    """The content of a `config.json` for transformers, without the ids of special tokens."""
    name = architecture_of(config)
    architecture = ARCHITECTURES[name]
    ours = dataclasses.asdict(config) | {
        "num_kv_heads": config.kv_heads,
        "head_dim": config.head_size,
        "hidden_dim": config.ff_dim,
    }
    theirs: dict[str, Any] = {
        "architectures": [architecture.class_name],
        "model_type": name,
        "dtype": "float32",
    }
    theirs |= {key: ours[field] for field, key in architecture.keys.items()}
    theirs |= {key: values[0] for key, values in architecture.fixed.items()}
    if architecture is QWEN3:
        # transformers 5 reads rope_parameters, 4 reads rope_theta.
        theirs["rope_parameters"] = {"rope_type": "default", "rope_theta": config.rotary_base}
    else:
        theirs["embd_pdrop"] = config.dropout
    return theirs


def config_from_huggingface(data: Mapping[str, Any]) -> GPTConfig:
    """Our config for a `config.json` of transformers; what our model cannot compute is refused."""
    architecture = ARCHITECTURES.get(str(data.get("model_type")))
    if architecture is None:
        supported = " and ".join(ARCHITECTURES)
        found = _short(data.get("model_type"))
        raise UserError(f"model_type {found} is not supported, only {supported}")
    data = {**architecture.defaults, **data}
    if architecture is QWEN3:
        data = _with_plain_rotation(data)
    for key, values in {**architecture.fixed, "quantization_config": (None,)}.items():
        if data.get(key, values[0]) not in values:
            only = " or ".join(map(repr, values))
            raise UserError(f"{key} {_short(data[key])} is not supported, only {only}")
    if missing := [key for key in architecture.keys.values() if key not in data]:
        raise UserError(f"{missing[0]} is missing")
    fields = {field: data[key] for field, key in architecture.keys.items()}
    return from_dict(GPTConfig, {"architecture": data["model_type"], **fields})


def _with_plain_rotation(data: dict[str, Any]) -> dict[str, Any]:
    """Put rope_theta in one place; refuse sliding windows, and rotary positions that are scaled or
    turn only a part of each head."""
    kinds = data.get("layer_types") or ["full_attention"]
    if not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds):
        raise UserError(f"layer_types {_short(kinds)} is not supported, only full_attention")
    key = "rope_parameters" if data.get("rope_parameters") else "rope_scaling"
    rope = data.get(key) or {}
    usual = {"rope_type": "default", "type": "default", "partial_rotary_factor": 1.0}
    if not isinstance(rope, dict) or any(rope.get(k, v) != v for k, v in usual.items()):
        raise UserError(f"{key} {_short(rope)} is not supported, only the default rope_type")
    return {**data, "rope_theta": rope.get("rope_theta", data["rope_theta"])}


def _short(value: Any) -> str:
    """A value from a file, in one line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# Weights


def weights_to_huggingface(weights: Weights, config: GPTConfig) -> dict[str, Array]:
    """Their tensors for our weights."""
    return {
        name: array.T if _TRANSPOSED.search(name) else array
        for name, array in stacked(weights, config)
    }


def stacked(weights: Weights, config: GPTConfig) -> Iterator[tuple[str, Array]]:
    """Their names and tensors, each matrix as (out, in)."""
    for theirs, ours in _modules(config):
        for kind in ("weight", "bias"):
            if f"{ours[0]}.{kind}" in weights:
                parts = [weights[f"{name}.{kind}"] for name in ours]
                yield f"{theirs}.{kind}", parts[0] if len(parts) == 1 else np.concatenate(parts)


def weights_from_huggingface(weights: Weights, config: GPTConfig) -> dict[str, Array]:
    """Our weights from their tensors, of which none is missing and none is left; whoever makes a
    model of them checks their shapes."""
    tensors, found = _with_present_names(weights, config), {}
    for theirs, ours in _modules(config):
        if f"{theirs}.weight" not in tensors:
            raise UserError(f"tensor {theirs}.weight is missing")
        for name in (f"{theirs}.weight", f"{theirs}.bias"):
            if name in tensors:
                array = np.atleast_1d(tensors.pop(name))
                array = array.T if _TRANSPOSED.search(name) else array
                for module, part in zip(ours, np.array_split(array, len(ours)), strict=True):
                    found[name.replace(theirs, module)] = part
    if tensors:
        class_name = ARCHITECTURES[architecture_of(config)].class_name
        raise UserError(f"tensor {min(tensors)} does not belong to a {class_name}")
    return found


def _modules(config: GPTConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The rows of the table, those of a block once for each block, without a tied head."""
    for theirs, ours in ARCHITECTURES[architecture_of(config)].modules.items():
        if theirs == "lm_head" and config.tie_embeddings:
            continue
        for i in range(config.num_layers if "#" in theirs else 1):
            yield theirs.replace("#", str(i)), tuple(name.replace("#", str(i)) for name in ours)


def _with_present_names(weights: Weights, config: GPTConfig) -> dict[str, Array]:
    """The first GPT-2 files leave out a prefix of the names, and hold more than weights."""
    prefix = "transformer." if architecture_of(config) == "gpt2" else "model."
    named = {
        name if name.startswith((prefix, "lm_head.")) else prefix + name: array
        for name, array in weights.items()
        if not _NOT_WEIGHTS.search(name)
    }
    if config.tie_embeddings:
        named.pop("lm_head.weight", None)
    return named
