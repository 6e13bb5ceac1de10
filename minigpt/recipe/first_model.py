"""The network that a training begins with: a new `GPT`, a trained one, or one that was given.

A new one already knows which tokens resemble each other, and which follow which.
"""

import torch
from torch import nn

from ..data.batches import Dataset
from ..model import GPT
from . import induction
from .embedding_init import embedding_init, head_init, sample
from .plan import Plan
from .request import Request
from .start import as_planned


def first_model(request: Request, plan: Plan | None, dataset: Dataset) -> nn.Module:
    """The network or the model that was given, or else a new one of the planned shape."""
    if request.network is not None:
        return request.network
    if plan is None:
        raise ValueError("a model is made as planned")
    if request.start is not None:
        return as_planned(request.start, plan.model).model

    torch.manual_seed(request.training.seed)
    model = GPT(plan.model)
    if request.text.embedding_init == "text":
        _learn_from_counts(model, dataset, request.given.tokenizer, request.training.seed)
    return model


def _learn_from_counts(model: GPT, dataset: Dataset, tokenizer: str, seed: int) -> None:
    """Set the embedding, and the model's head if it has weights of its own, by which tokens stand
    beside which in the text. Set two attention heads that continue what the text repeats, if the
    model has room for them."""
    config = model.config
    reserved = induction.reserved_components(config, tokenizer)
    vectors = embedding_init(dataset.train, config.vocab_size, config.emb_dim - reserved, seed)
    if reserved:
        vectors = induction.with_reserved(vectors, reserved)  # (vocab_size, emb_dim)
    model.token_embedding.load_state_dict({"weight": vectors})

    if not config.tie_embeddings:
        head = head_init(dataset.train, model.final_norm(vectors))  # (vocab_size, emb_dim)
        model.head.load_state_dict({"weight": head})
    if reserved:
        induction.start(model, sample(dataset.train), reserved)
