"""Whether a network is a `GPT` as this package has it, or something else of the same shape.

The glass engine, and whatever reads a run, compute what a `GPT` computes. A subclass, or a GPT with
another part in it, often has the same weights by the same names; so it is known by its classes.
"""

from typing import Any

from torch import nn

from .attention import MultiHeadAttention, RotaryPositions
from .attention.multi_head import HeadNorm
from .config import GPT_NAME, GPTConfig, weight_shapes
from .model import GPT, Dropout, FeedForward, TransformerBlock


def network_name(model: nn.Module) -> str:
    """What to call a network: "GPT" if, in evaluation, it computes what a GPT of its config does;
    else its class, or "GPT with ...", the part that was replaced or changed.

    Forward hooks do not count: they are not part of what is saved.
    """
    if type(model) is not GPT:
        name = type(model).__name__
        return name if name != GPT_NAME else "GPT of another package"

    classes, settings = _classes(model.config), _settings(model.config)
    for path, part in model.named_modules():
        last = path.rpartition(".")[2]
        name = "block" if last.isdigit() else last
        if type(part) not in classes.get(name, ()):
            return f"GPT with {type(part).__name__} as {path}"

        expected = settings.get(name, {})
        is_changed = any(getattr(part, field) != value for field, value in expected.items())
        if is_changed or _has_own_method(part):
            return f"GPT with a changed {path or 'forward'}"

    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    return GPT_NAME if shapes == _shapes(model.config) else "GPT with other weights"


def has_hooks(model: nn.Module) -> bool:
    """Whether anything is called when a part of the network computes, which could change it."""
    return any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


def _classes(config: GPTConfig) -> dict[str, tuple[type[nn.Module], ...]]:
    """The classes that a part of a GPT may have, by the last piece of its path."""
    norm = nn.LayerNorm if config.architecture == "gpt2" else nn.RMSNorm
    head_norm = nn.Identity if config.architecture == "gpt2" else HeadNorm
    linear = ("head", "W_query", "W_key", "W_value", "W_gate", "W_in", "out_proj")
    return {
        "": (GPT,),
        "token_embedding": (nn.Embedding,),
        "position_embedding": (nn.Embedding,),
        "dropout": (Dropout, nn.Dropout, nn.Identity),  # in evaluation the same
        "blocks": (nn.ModuleList,),
        "block": (TransformerBlock,),
        "attention_norm": (norm,),
        "attention": (MultiHeadAttention,),
        "query_norm": (head_norm,),
        "key_norm": (head_norm,),
        "rotary": (RotaryPositions,),
        "feed_forward_norm": (norm,),
        "feed_forward": (FeedForward,),
        "final_norm": (norm,),
        **dict.fromkeys(linear, (nn.Linear,)),
    }


def _settings(config: GPTConfig) -> dict[str, dict[str, Any]]:
    """What a part computes by, besides its weights: the values of its fields."""
    attention = {
        "num_heads": config.num_heads,
        "num_kv_heads": config.kv_heads,
        "head_dim": config.head_size,
        "causal": True,
    }
    norms = ("attention_norm", "feed_forward_norm", "final_norm")
    head_norms = () if config.architecture == "gpt2" else ("query_norm", "key_norm")
    return {
        "attention": attention,
        "rotary": {"base": config.rotary_base},
        "token_embedding": {"max_norm": None},
        "position_embedding": {"max_norm": None},
        **{name: {"eps": config.norm_eps} for name in (*norms, *head_norms)},
    }


def _has_own_method(part: nn.Module) -> bool:
    """Whether a method of its class was replaced in this one object, as in ``part.forward = f``."""
    return any(callable(getattr(type(part), name, None)) for name in vars(part))


def _shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter of a GPT by its name."""
    shapes = {}
    for pattern, shape in weight_shapes(config).items():
        for i in range(config.num_layers if "#" in pattern else 1):
            shapes[pattern.replace("#", str(i))] = shape
    return shapes
