"""What the tests here exchange: random models of each architecture, tokenizers, a hard text.

The weights are drawn wide, so that logits differ by whole units and no block is the identity.
"""

from typing import Any

import tiktoken
import torch

from minigpt import GPT, GPTConfig
from minigpt.tokenizer import BytePairTokenizer, Tokenizer, make_tokenizer
from minigpt.tokenizer.chunked_encoding import PATTERNS

HARD_TEXT = (
    "Don't  stop: 3.14159, x² ≠ y!\r\n\n\n\tThe naïve café — “quoted” 日本語 한국어 עברית"
    "\u00a0\u2003 👩\u200d👩\u200d👧 🇩🇪 e\u0301 __init__ <|endoftext|> ZZZzzz\x00\x7f   \n  end   "
)
TRAINING_TEXT = "The fox asked the crow for bread; the crow said no, and flew to the mill.\n" * 9
PROMPT = "The crow"
VOCAB_SIZE = 290

GROUPED = {"num_heads": 4, "num_kv_heads": 2}
CONFIGS = {
    "qwen3": {"emb_dim": 24, "num_heads": 3, "num_layers": 2},
    "qwen3 grouped, untied": {
        **GROUPED,
        "emb_dim": 40,
        "hidden_dim": 37,
        "tie_embeddings": False,
        "rotary_base": 5_000.0,
        "norm_eps": 1e-5,
    },
    "qwen3, one key/value head": {"emb_dim": 36, "num_heads": 6, "num_kv_heads": 1},
    "qwen3, heads wider than the model": {**GROUPED, "emb_dim": 26, "head_dim": 12},
    "llama": {"architecture": "llama", "emb_dim": 24, "num_heads": 2, "norm_eps": 1e-5},
    "llama grouped, untied": {
        **GROUPED,
        "qk_norm": False,
        "emb_dim": 40,
        "head_dim": 12,
        "hidden_dim": 30,
        "tie_embeddings": False,
        "rotary_base": 500.0,
    },
    "gpt2": {"architecture": "gpt2", "emb_dim": 21, "num_heads": 3, "norm_eps": 1e-5},
    "gpt2 untied": {
        "architecture": "gpt2",
        "emb_dim": 32,
        "num_heads": 2,
        "hidden_dim": 50,
        "tie_embeddings": False,
        "dropout": 0.1,
    },
}


def byte_pairs(vocab_size: int = VOCAB_SIZE) -> Any:
    """A BPE learned from a few words."""
    return make_tokenizer("bpe", vocab_size, [TRAINING_TEXT])


def characters() -> Tokenizer:
    """A character tokenizer that knows the hard text."""
    return make_tokenizer("char", None, [TRAINING_TEXT, HARD_TEXT])


def with_gaps() -> Tokenizer:
    """Like cl100k_base: another pattern, unused ids, special tokens at the end."""
    ranks = byte_pairs().encoding._mergeable_ranks
    specials = {"<|endoftext|>": len(ranks) + 3, "<|endofprompt|>": len(ranks) + 7}
    pattern = PATTERNS["cl100k_base"]
    encoding = tiktoken.Encoding(
        "like", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials
    )
    return BytePairTokenizer(encoding)


TOKENIZERS = {"bpe": byte_pairs, "char": characters, "with gaps": with_gaps}


def weights_of(model: GPT) -> dict[str, Any]:
    """As numpy arrays, without a tied head."""
    return {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}


def random_model(
    name: str, seed: int = 0, vocab_size: int = VOCAB_SIZE, context_length: int = 128
) -> GPT:
    """A model of one of CONFIGS in evaluation mode."""
    torch.manual_seed(seed)
    fields: dict[str, Any] = {"num_layers": 3} | CONFIGS[name]
    model = GPT(GPTConfig(vocab_size, context_length=context_length, **fields))
    randomize(model)
    return model.eval()


def randomize(model: torch.nn.Module) -> None:
    """Wide random weights, norms and biases included."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=1.5 / parameter.shape[1] ** 0.5)
            else:
                parameter.add_(0.2 * torch.randn_like(parameter))
