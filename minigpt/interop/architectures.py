"""Our two architectures as the architectures that other programs know, and their configs both ways.

`gpt2` is transformers' GPT2LMHeadModel, `modern` its Qwen3ForCausalLM. A table for each says what
is called what; `weights.py` follows the same tables. Pure functions of dictionaries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import UserError
from ..config import GPTConfig, from_dict, to_dict


class Module(NamedTuple):
    """Modules of ours, stacked in this order, and the one module that holds them there."""

    ours: tuple[str, ...]
    theirs: str
    transposed: bool = False  # GPT-2 keeps these matrices as (in, out)


@dataclass(frozen=True)
class Architecture:
    """A model class of transformers that one of our architectures equals."""

    name: str
    model_type: str
    architecture: str
    keys: dict[str, str]  # field of GPTConfig -> key of their config
    defaults: dict[str, Any]  # what transformers takes for a key that is left out
    fixed: dict[str, tuple[Any, ...]]  # keys with the values that our architecture computes
    modules: tuple[Module, ...]  # "#" stands for the number of the block


GPT2 = Architecture(
    name="GPT2LMHeadModel",
    model_type="gpt2",
    architecture="gpt2",
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
    modules=(
        Module(("token_embedding",), "transformer.wte"),
        Module(("position_embedding",), "transformer.wpe"),
        Module(("blocks.#.attention_norm",), "transformer.h.#.ln_1"),
        Module(
            (
                "blocks.#.attention.W_query",
                "blocks.#.attention.W_key",
                "blocks.#.attention.W_value",
            ),
            "transformer.h.#.attn.c_attn",
            transposed=True,
        ),
        Module(("blocks.#.attention.out_proj",), "transformer.h.#.attn.c_proj", transposed=True),
        Module(("blocks.#.feed_forward_norm",), "transformer.h.#.ln_2"),
        Module(("blocks.#.feed_forward.W_in",), "transformer.h.#.mlp.c_fc", transposed=True),
        Module(("blocks.#.feed_forward.out_proj",), "transformer.h.#.mlp.c_proj", transposed=True),
        Module(("final_norm",), "transformer.ln_f"),
        Module(("head",), "lm_head"),
    ),
)

QWEN3 = Architecture(
    name="Qwen3ForCausalLM",
    model_type="qwen3",
    architecture="qwen3",
    keys={
        "vocab_size": "vocab_size",
        "context_length": "max_position_embeddings",
        "emb_dim": "hidden_size",
        "num_layers": "num_hidden_layers",
        "num_heads": "num_attention_heads",
        "num_kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "hidden_dim": "intermediate_size",
        "dropout": "resid_pdrop",  # not Qwen3's: kept for us, passed over by others
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
    fixed={
        "hidden_act": ("silu",),
        "attention_bias": (False,),
        "use_sliding_window": (False,),
    },
    modules=(
        Module(("token_embedding",), "model.embed_tokens"),
        Module(("blocks.#.attention_norm",), "model.layers.#.input_layernorm"),
        Module(("blocks.#.attention.W_query",), "model.layers.#.self_attn.q_proj"),
        Module(("blocks.#.attention.W_key",), "model.layers.#.self_attn.k_proj"),
        Module(("blocks.#.attention.W_value",), "model.layers.#.self_attn.v_proj"),
        Module(("blocks.#.attention.query_norm",), "model.layers.#.self_attn.q_norm"),
        Module(("blocks.#.attention.key_norm",), "model.layers.#.self_attn.k_norm"),
        Module(("blocks.#.attention.out_proj",), "model.layers.#.self_attn.o_proj"),
        Module(("blocks.#.feed_forward_norm",), "model.layers.#.post_attention_layernorm"),
        Module(("blocks.#.feed_forward.W_gate",), "model.layers.#.mlp.gate_proj"),
        Module(("blocks.#.feed_forward.W_in",), "model.layers.#.mlp.up_proj"),
        Module(("blocks.#.feed_forward.out_proj",), "model.layers.#.mlp.down_proj"),
        Module(("final_norm",), "model.norm"),
        Module(("head",), "lm_head"),
    ),
)


def architecture_of(config: GPTConfig) -> Architecture:
    """The architecture that a model of ours is elsewhere."""
    return GPT2 if config.architecture == "gpt2" else QWEN3


def config_to_huggingface(config: GPTConfig) -> dict[str, Any]:
    """The content of a `config.json` for transformers, but for the ids of special tokens."""
    architecture = architecture_of(config)
    ours = to_dict(config) | {
        "num_kv_heads": config.kv_heads,
        "head_dim": config.head_size,
        "hidden_dim": config.ff_dim,
    }
    theirs: dict[str, Any] = {
        "architectures": [architecture.name],
        "model_type": architecture.model_type,
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
    """Our config for a `config.json` of transformers.

    Raises:
        UserError: if it is of another architecture, or asks for something that our model does not
            compute, naming it.
    """
    architecture = _find_architecture(data)
    data = {**architecture.defaults, **data}
    if architecture is QWEN3:
        data = _with_plain_rotation(data)
    for key, values in {**architecture.fixed, "quantization_config": (None,)}.items():
        if data.get(key, values[0]) not in values:
            only = " or ".join(map(repr, values))
            raise UserError(f"{key} {_short(data[key])} is not supported, only {only}")
    missing = [key for key in architecture.keys.values() if key not in data]
    if missing:
        raise UserError(f"{missing[0]} is missing")
    fields = {field: data[key] for field, key in architecture.keys.items()}
    return from_dict(GPTConfig, {"architecture": architecture.architecture, **fields})


def _find_architecture(data: Mapping[str, Any]) -> Architecture:
    known = {architecture.name: architecture for architecture in (GPT2, QWEN3)}
    by_type = {architecture.model_type: architecture.name for architecture in (GPT2, QWEN3)}
    names, model_type = data.get("architectures"), data.get("model_type")
    name = str(names[0]) if isinstance(names, list) and names else by_type.get(str(model_type))
    if name not in known:
        asked, supported = _short(name or model_type), " and ".join(known)
        raise UserError(f"architecture {asked} is not supported, only {supported}")
    return known[name]


def _with_plain_rotation(data: dict[str, Any]) -> dict[str, Any]:
    """Refuse attention that is not over all tokens, and rotary positions that are not over all
    of a head or are stretched; put rope_theta in its one place."""
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
