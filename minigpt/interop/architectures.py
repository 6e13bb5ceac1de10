"""What other programs call the parts of a model, for each preset of `GPTConfig`: the one table.

`gpt2` is transformers' GPT2LMHeadModel, `qwen3` its Qwen3ForCausalLM, `llama` its LlamaForCausalLM.
The names in GGUF files derive from those of transformers.
"""

from dataclasses import dataclass, field
from typing import Any

from .. import UserError
from ..config import GPTConfig


@dataclass(frozen=True)
class Module:
    """A module of theirs, and the modules of ours whose tensors it holds, one after another. In the
    names # is the number of the block."""

    theirs: str
    ours: tuple[str, ...]
    is_transposed: bool = False  # its matrix is kept as (in, out)


@dataclass(frozen=True)
class Architecture:
    """What transformers calls a model and its parts."""

    name: str  # of the preset, of transformers' model_type and of GGUF's architecture
    class_name: str
    keys: dict[str, str]  # field of GPTConfig -> key of their config.json
    defaults: dict[str, Any]  # what transformers takes for a key that is left out
    fixed: dict[str, tuple[Any, ...]]  # the values of a key that our model computes
    modules: tuple[Module, ...]
    prefix: str  # of the names of tensors; older files leave it out
    divides_width: bool = False  # whether they demand that num_heads divides emb_dim
    # Modules of ours whose rows have another order in GGUF; see `gguf.interleaved`.
    interleaved: frozenset[str] = field(default=frozenset())


GPT2 = Architecture(
    name="gpt2",
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
    modules=(
        Module("transformer.wte", ("token_embedding",)),
        Module("transformer.wpe", ("position_embedding",)),
        Module("transformer.h.#.ln_1", ("blocks.#.attention_norm",)),
        Module(
            "transformer.h.#.attn.c_attn",
            (
                "blocks.#.attention.W_query",
                "blocks.#.attention.W_key",
                "blocks.#.attention.W_value",
            ),
            is_transposed=True,
        ),
        Module("transformer.h.#.attn.c_proj", ("blocks.#.attention.out_proj",), is_transposed=True),
        Module("transformer.h.#.ln_2", ("blocks.#.feed_forward_norm",)),
        Module("transformer.h.#.mlp.c_fc", ("blocks.#.feed_forward.W_in",), is_transposed=True),
        Module(
            "transformer.h.#.mlp.c_proj", ("blocks.#.feed_forward.out_proj",), is_transposed=True
        ),
        Module("transformer.ln_f", ("final_norm",)),
        Module("lm_head", ("head",)),
    ),
    prefix="transformer.",
)

_LLAMA_KEYS = {
    "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings",
    "emb_dim": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "num_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "hidden_dim": "intermediate_size",
    "dropout": "resid_pdrop",  # not a key of theirs: we read it again, others ignore it
    "attention_dropout": "attention_dropout",
    "tie_embeddings": "tie_word_embeddings",
    "rotary_base": "rope_theta",
    "norm_eps": "rms_norm_eps",
}
_LLAMA_DEFAULTS = {
    "num_key_value_heads": None,
    "head_dim": None,
    "resid_pdrop": 0.0,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "rope_theta": 10_000.0,
    "rms_norm_eps": 1e-6,
}
_SILU = ("silu", "swish")  # two names of one function
_LLAMA_MODULES = (
    Module("model.embed_tokens", ("token_embedding",)),
    Module("model.layers.#.input_layernorm", ("blocks.#.attention_norm",)),
    Module("model.layers.#.self_attn.q_proj", ("blocks.#.attention.W_query",)),
    Module("model.layers.#.self_attn.k_proj", ("blocks.#.attention.W_key",)),
    Module("model.layers.#.self_attn.v_proj", ("blocks.#.attention.W_value",)),
    Module("model.layers.#.self_attn.o_proj", ("blocks.#.attention.out_proj",)),
    Module("model.layers.#.post_attention_layernorm", ("blocks.#.feed_forward_norm",)),
    Module("model.layers.#.mlp.gate_proj", ("blocks.#.feed_forward.W_gate",)),
    Module("model.layers.#.mlp.up_proj", ("blocks.#.feed_forward.W_in",)),
    Module("model.layers.#.mlp.down_proj", ("blocks.#.feed_forward.out_proj",)),
    Module("model.norm", ("final_norm",)),
    Module("lm_head", ("head",)),
)

LLAMA = Architecture(
    name="llama",
    class_name="LlamaForCausalLM",
    keys=_LLAMA_KEYS,
    defaults=_LLAMA_DEFAULTS,
    fixed={"hidden_act": _SILU, "attention_bias": (False,), "mlp_bias": (False,)},
    modules=_LLAMA_MODULES,
    prefix="model.",
    divides_width=True,
    interleaved=frozenset({"blocks.#.attention.W_query", "blocks.#.attention.W_key"}),
)

QWEN3 = Architecture(
    name="qwen3",
    class_name="Qwen3ForCausalLM",
    keys=_LLAMA_KEYS,
    defaults={
        **_LLAMA_DEFAULTS,
        "num_key_value_heads": 32,
        "head_dim": 128,
        "use_sliding_window": False,
    },
    fixed={"hidden_act": _SILU, "attention_bias": (False,), "use_sliding_window": (False,)},
    modules=(
        *_LLAMA_MODULES,
        Module("model.layers.#.self_attn.q_norm", ("blocks.#.attention.query_norm",)),
        Module("model.layers.#.self_attn.k_norm", ("blocks.#.attention.key_norm",)),
    ),
    prefix="model.",
)

ARCHITECTURES = {architecture.name: architecture for architecture in (GPT2, LLAMA, QWEN3)}
SUPPORTED = "gpt2, llama and qwen3"


def architecture_of(config: GPTConfig) -> Architecture:
    """The architecture by which other programs run a model; UserError if they run none like it."""
    architecture = ARCHITECTURES.get(config.preset or "")
    if architecture is None:
        raise UserError(f"other programs run {SUPPORTED}; they do not run {config.kind}")

    # What has no key in their config is the same in every model of theirs.
    usual = {"num_kv_heads": config.num_heads, "head_dim": config.emb_dim / config.num_heads}
    ours = {"num_kv_heads": config.kv_heads, "head_dim": config.head_size}
    for name, value in ours.items():
        if name not in architecture.keys and value != usual[name]:
            raise UserError(f"other programs have no {architecture.name} with {name} {value}")

    if architecture.divides_width and config.emb_dim % config.num_heads:
        raise UserError(
            f"other programs have no {architecture.name} whose emb_dim {config.emb_dim} is not a "
            f"multiple of num_heads {config.num_heads}"
        )
    return architecture
