"""The optimizer of a model."""

import torch

from ..config import TrainConfig
from ..model import GPT


def make_optimizer(model: GPT, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW ("Decoupled Weight Decay Regularization", Loshchilov and Hutter 2019)."""
    return torch.optim.AdamW(
        model.parameter_groups(config.weight_decay),
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        fused=True,
    )
