"""The GPT: token ids in, logits out. Token embedding -> TransformerBlocks -> norm -> head.

One class is made of the parts that its `GPTConfig` names, whatever they are. The attention layer
comes from `minigpt.attention`.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import KeyValueCache, MultiHeadAttention
from .attention.fused import Dropout, linear_cross_entropy
from .config import GPTConfig, weight_shapes
from .config.parts.norms import NORMS
from .config.parts.positions import POSITIONS

Caches = list[KeyValueCache]

# Logits computed at once in an evaluation: on a CPU they stay in the cache.
_LOGITS_ON_CPU = 1 << 20
_LOGITS_ON_GPU = 1 << 24


class FeedForward(nn.Module):
    """The part of a block that works on each token by itself.

    - gelu: ``W_out gelu(W_in x)``, the tanh form of GELU (Hendrycks and Gimpel 2016);
    - swiglu: ``W_out (silu(W_gate x) * W_in x)`` (Shazeer 2020).
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        d = config.emb_dim
        hidden = config.ff_dim
        self.W_gate: nn.Linear | None = None
        if config.feed_forward == "swiglu":
            self.W_gate = nn.Linear(d, hidden, config.bias)
        self.W_in = nn.Linear(d, hidden, config.bias)
        self.out_proj = nn.Linear(hidden, d, config.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(b, T, emb_dim)`` to ``(b, T, emb_dim)``."""
        hidden = self.W_in(x)  # (b, T, ff_dim)
        if self.W_gate is None:
            return self.out_proj(F.gelu(hidden, approximate="tanh"))
        return self.out_proj(F.silu(self.W_gate(x)) * hidden)


class TransformerBlock(nn.Module):
    """``x + attention(norm(x))``, then ``x + feed_forward(norm(x))`` (pre-norm)."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        norm = NORMS[config.norm]
        self.attention_norm = norm.torch_form(config.emb_dim, config.norm_eps, config.bias)
        self.attention = MultiHeadAttention(
            config.emb_dim,
            config.emb_dim,
            config.context_length,
            config.attention_dropout,
            config.num_heads,
            qkv_bias=config.bias,
            num_kv_heads=config.kv_heads,
            qk_norm=config.qk_norm,
            norm_eps=config.norm_eps,
            out_bias=config.bias,
            head_dim=config.head_size,
            **POSITIONS[config.positions].in_attention(config),
        )

        self.feed_forward_norm = norm.torch_form(config.emb_dim, config.norm_eps, config.bias)
        self.feed_forward = FeedForward(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Map ``(b, T, emb_dim)`` to ``(b, T, emb_dim)``."""
        x = x + self.dropout(self.attention(self.attention_norm(x), cache))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class GPT(nn.Module):
    """A decoder-only transformer ("Language Models are Unsupervised Multitask Learners",
    Radford et al. 2019), of the shape in `config`.
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.config = config

        self.token_embedding = nn.Embedding(config.vocab_size, config.emb_dim)
        self.position_embedding = POSITIONS[config.positions].vectors(config)
        self.dropout = Dropout(config.dropout)

        self.blocks = nn.ModuleList(TransformerBlock(config) for _ in range(config.num_layers))
        norm = NORMS[config.norm]
        self.final_norm = norm.torch_form(config.emb_dim, config.norm_eps, config.bias)

        self.head = nn.Linear(config.emb_dim, config.vocab_size, bias=False)
        if config.tie_embeddings:
            self.head.weight = self.token_embedding.weight

        self._initialise()

    def forward(self, token_ids: Tensor, *, caches: Caches | None = None) -> Tensor:
        """The logits of the token that follows each position.

        Args:
            token_ids: ``(b, T)``, integers below vocab_size.
            caches: from :meth:`new_caches`, with the earlier tokens; token_ids are added to them.

        Returns:
            The logits, ``(b, T, vocab_size)``.

        Raises:
            ValueError: if token_ids has another shape or, with the cached tokens, is longer
                than context_length.
        """
        return self.head(self._features(token_ids, caches))

    def loss(self, token_ids: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy of the logits of :meth:`forward`.

        On a CPU only a few rows of logits are in memory at a time.

        Args:
            token_ids: ``(b, T)``, integers below vocab_size.
            targets: ``(b, T)``, the token that follows each position; -100 where none counts.

        Returns:
            The loss in nats a token, a scalar in float32 or wider: the mean over the targets that
            count, 0 if none does.

        Raises:
            ValueError: as :meth:`forward`.
        """
        x = self._features(token_ids)  # (b, T, emb_dim)
        return linear_cross_entropy(x.flatten(0, 1), self.head.weight, targets.flatten())

    @torch.no_grad()
    def token_losses(self, token_ids: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The cross-entropy of single tokens, without gradients, and which are guessed right.

        Logits are computed for targets that count, and only a few rows are in memory at a time.

        Args:
            token_ids: ``(b, T)``, integers below vocab_size.
            targets: ``(b, T)``, the token that follows each position; -100 where none counts.

        Returns:
            The cross-entropy of each target in nats, ``(b, T)``, in float32 or wider, 0 where none
            counts; and whether the target is the token that the model finds likeliest there,
            ``(b, T)``.
        """
        places = (targets >= 0).flatten().nonzero().flatten()  # (n,), of those that count
        x = self._features(token_ids).flatten(0, 1)  # (b * T, emb_dim)

        wide = torch.promote_types(x.dtype, torch.float32)
        device = x.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        weight = self.head.weight.to(dtype)  # (vocab_size, emb_dim), converted once

        logits_at_once = _LOGITS_ON_CPU if device == "cpu" else _LOGITS_ON_GPU
        rows = max(logits_at_once // len(weight), 1)
        losses = x.new_zeros(targets.numel(), dtype=wide)  # (b * T,)
        are_right = x.new_zeros(targets.numel(), dtype=torch.bool)  # (b * T,)
        for some in places.split(rows):
            ts = targets.flatten()[some]  # (rows,)
            logits = F.linear(x[some].to(dtype), weight).to(wide)  # (rows, vocab_size)
            losses[some] = F.cross_entropy(logits, ts, reduction="none")
            are_right[some] = logits.argmax(-1) == ts
        return losses.view(targets.shape), are_right.view(targets.shape)

    def _features(self, token_ids: Tensor, caches: Caches | None = None) -> Tensor:
        """What the head sees, ``(b, T, emb_dim)``."""
        if token_ids.dim() != 2:
            raise ValueError(f"expected token ids (b, T), got {tuple(token_ids.shape)}")
        start = caches[0].length if caches else 0
        end = start + token_ids.shape[1]
        limit = self.config.context_length
        if end > limit:
            raise ValueError(f"a sequence of {end} tokens is longer than context_length {limit}")

        x = self.token_embedding(token_ids)  # (b, T, emb_dim)
        if self.position_embedding is not None:
            positions = torch.arange(start, end, device=x.device)
            x = x + self.position_embedding(positions)
        x = self.dropout(x)

        for i, block in enumerate(self.blocks):
            x = block(x, caches[i] if caches else None)  # (b, T, emb_dim)
        return self.final_norm(x)

    def new_caches(self, batch_size: int) -> Caches:
        """An empty key/value cache for each block, for `batch_size` sequences."""
        c = self.config
        weight = self.token_embedding.weight
        return [
            KeyValueCache(
                batch_size,
                c.kv_heads,
                c.context_length,
                c.head_size,
                dtype=weight.dtype,
                device=weight.device,
            )
            for _ in self.blocks
        ]

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """The parameters for an optimizer, in three groups: the matrices of the blocks' linear
        layers; all other parameters of two dimensions, such as embeddings and the head; and the
        rest, which has no weight decay."""
        linear = {part.weight for part in self.blocks.modules() if isinstance(part, nn.Linear)}
        matrices = []
        tables = []
        others = []
        for parameter in self.parameters():
            if parameter.dim() != 2:
                others.append(parameter)
            elif parameter in linear:
                matrices.append(parameter)
            else:
                tables.append(parameter)

        return [
            {"params": matrices, "weight_decay": weight_decay},
            {"params": tables, "weight_decay": weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]

    def _initialise(self) -> None:
        """Draw small weights: an untrained model gives all tokens about the same probability.

        As in GPT-2 (Radford et al. 2019, section 2.3): standard deviation 0.02, divided by
        sqrt(2 * num_layers) for the projections into the residual stream. Without a vector for each
        position these begin at zero, so that every block is the identity at first. A tied head then
        compares each token's embedding with itself; long embeddings would make the model predict
        the token it just read.
        """
        as_gpt2 = self.position_embedding is not None
        embedding_std = 0.02 if as_gpt2 else min(0.02, 2.5 / self.config.emb_dim)
        residual_std = 0.02 / math.sqrt(2 * self.config.num_layers) if as_gpt2 else 0.0

        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() == 1:
                nn.init.ones_(parameter)
            elif "embedding" in name or name.startswith("head."):
                nn.init.normal_(parameter, std=embedding_std)
            elif name.endswith("out_proj.weight"):
                nn.init.normal_(parameter, std=residual_std)
            else:
                nn.init.normal_(parameter, std=0.02)


def flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """Floating-point operations of the matrix products for each token of a full context.

    These are two for every weight of a matrix, plus the operations of attention; with the backward
    pass three times as many ("Scaling Laws for Neural Language Models", Kaplan et al. 2020, section
    2.1).
    """
    in_a_block = sum(
        math.prod(shape)
        for name, shape in weight_shapes(config).items()
        if name.startswith("blocks.") and len(shape) == 2
    )
    head = config.vocab_size * config.emb_dim  # embeddings are looked up
    matrices = config.num_layers * in_a_block + head

    products = 2 * matrices * (3 if training else 1)
    return products + attention_flops_per_token(config, training)


def attention_flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """The operations of attention among those of :func:`flops_per_token`: in each block
    ``4 T num_heads head_size`` for the scores and context vectors, halved by the mask."""
    q_dim = config.num_heads * config.head_size
    forward = config.num_layers * 2 * config.context_length * q_dim
    return 3 * forward if training else forward
