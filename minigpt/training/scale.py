"""What a training takes, by formula: memory in each process, and what each sends in a step.

docs/scale.md shows both for models of several sizes; tests and benchmarks/distributed.py hold them
against measured ones.
"""

from dataclasses import dataclass

from ..config import GPTConfig, TrainConfig
from ..model import count_parameters

_NUMBER = 4  # bytes: parameters, gradients and what optimizers remember are float32

# Bytes that the backward pass needs of each block for a token: for each component of the residual
# stream, the queries, the keys (and values), and the hidden layer. Measured, not derived: by how
# much the peak of a step grows with each of these sizes.
_OF_A_BLOCK = {
    ("qwen3", "float32"): (24.5, 20, 16, 16),
    ("qwen3", "bfloat16"): (26.5, 14, 12, 8),
    ("gpt2", "float32"): (32.4, 0, 0, 8),  # whose queries and keys are as wide as the stream
    ("gpt2", "bfloat16"): (24.4, 0, 0, 4),
}
_OF_A_LOGIT = 3 * _NUMBER  # the logits, their softmax and its gradient


@dataclass(frozen=True)
class Memory:
    """Bytes in each process while it trains, at the most.

    One process that computes its batch at once needs less: there are no gradients yet when it has
    all activations.
    """

    parameters: float  # and their copies in bfloat16
    gradients: float
    optimizer: float
    activations: float  # what the backward pass needs, and the logits

    @property
    def total(self) -> float:
        """All of it, without what torch itself takes."""
        return self.parameters + self.gradients + self.optimizer + self.activations


def memory(model: GPTConfig, training: TrainConfig, processes: int = 1) -> Memory:
    """How much memory a training needs, not compiled.

    With P parameters, M of them in the blocks' matrices, and n processes: 4 P bytes for parameters
    and for gradients, 8 P for AdamW, 4 M / n + 8 (P - M) for Muon; sharded, each of them an nth,
    and 4 bytes for every parameter that is gathered at a time: two blocks' and all outside of the
    blocks. bfloat16 adds 2 bytes for each parameter that is there whole.

    Args:
        model: its shape.
        training: batch, optimizer, precision ("bfloat16", otherwise float32 is meant), sharding.
        processes: that share the batch.
    """
    P, M = count_parameters(model), _in_matrices(model)
    part = processes if training.shard else 1
    whole = P - M + 2 * M / model.num_layers if part > 1 else P
    gathered = _NUMBER * whole if part > 1 else 0.0
    copies = 2 * whole if training.precision == "bfloat16" else 0.0
    optimizer = 8 * P / part
    if training.optimizer == "muon":
        optimizer = 4 * M / processes + 8 * (P - M) / part
    rows = training.batch_size / processes
    if training.micro_batch_size is not None:
        rows = min(rows, training.micro_batch_size)
    return Memory(
        parameters=_NUMBER * P / part + gathered + copies,
        gradients=_NUMBER * P / part,
        optimizer=optimizer,
        activations=rows * model.context_length * _activations(model, training.precision),
    )


def bytes_sent(
    model: GPTConfig, training: TrainConfig, processes: int, gloo: bool = False
) -> float:
    """What each process sends in a training step, in bytes.

    Collectives around a ring of n processes send (n - 1) / n of a tensor to gather it or to add it
    up in shards, and twice that to add it up whole ("Bandwidth optimal all-reduce algorithms for
    clusters of workstations", Patarasu and Yuan 2009):

    - DDP adds up the gradients, whole, once a step;
    - sharded, each part of a batch gathers all parameters, the blocks' once more for the backward
      pass, and adds up the gradients in shards;
    - Muon sends rows around so that each process has whole matrices, and back, or, of a model that
      is not sharded, lets all gather the results.

    Args:
        model: its shape.
        training: batch, optimizer, sharding.
        processes: n.
        gloo: gloo adds up in shards as if whole, and to send rows around lets all gather all.
    """
    n = processes
    passed = _NUMBER * (n - 1) / n  # bytes for each number of a tensor that goes around once
    P, M = count_parameters(model), _in_matrices(model)
    muon = training.optimizer == "muon"
    around = (M if gloo else M / n) * muon
    if not training.shard:
        return passed * (2 * P + around + M * muon)
    rows = -(-training.batch_size // n)
    parts = -(-rows // (training.micro_batch_size or rows))
    added = 2 * P if gloo else P
    return passed * (parts * (P + M + added) + 2 * around)


def _in_matrices(model: GPTConfig) -> int:
    """Parameters in the matrices of all blocks, which are nearly all of a large model."""
    d, h = model.emb_dim, model.head_size
    q, k = model.num_heads * h, model.kv_heads * h
    feed_forward = (3 if model.architecture == "qwen3" else 2) * d * model.ff_dim
    return model.num_layers * (2 * d * q + 2 * d * k + feed_forward)


def _activations(model: GPTConfig, precision: str) -> float:
    """Bytes for each token."""
    kind = "bfloat16" if precision == "bfloat16" else "float32"
    stream, query, key, hidden = _OF_A_BLOCK[model.architecture, kind]
    d, h = model.emb_dim, model.head_size
    q, k = model.num_heads * h, model.kv_heads * h
    dropped = 2 * (2 if kind == "bfloat16" else 4) * d if model.dropout else 0
    block = stream * d + query * q + key * k + hidden * model.ff_dim + dropped
    return model.num_layers * block + _OF_A_LOGIT * model.vocab_size
