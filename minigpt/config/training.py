"""How a model is trained: the fields of TrainConfig, which are options of `minigpt train`."""

from dataclasses import dataclass
from typing import Literal

from .checked import (
    Checked,
    Count,
    Decay,
    Kept,
    Positive,
    Probability,
    Seed,
    Share,
    is_utf8,
    require,
    setting,
)


@dataclass(frozen=True)
class TrainConfig(Checked):
    """How a model is trained."""

    minutes: Positive = setting(5.0, "how long the whole command may take")
    steps: Count | None = setting(None, "train this many steps, however long they take")
    lesson: bool = setting(
        False, "the same steps and losses on every laptop, begun from nothing (docs/training.md)"
    )
    max_epochs: Positive | None = setting(None, "end when the text has been read this many times")
    token_split_prob: Share = setting(
        0.0, "share of the tokens that are split in two, until the last fifth"
    )
    warmup_context: Count | None = setting(
        None, "shorter context to train with, until the last fifth"
    )
    batch_size: Count = setting(8, "sequences in a training step")
    micro_batch_size: Count | None = setting(
        None, "sequences computed at once, to save memory; all if unset"
    )
    num_workers: Count | None = setting(None, "threads that share each batch on a CPU")
    optimizer: Literal["adamw", "muon"] = setting(
        "muon", "muon: Muon for the matrices, AdamW for the rest"
    )
    learning_rate: Positive = setting(4e-3, "peak learning rate")
    min_lr_ratio: Share = setting(0.02, "last learning rate, as a share of the peak")
    warmup_ratio: Share = setting(0.02, "share of the training in which the learning rate rises")
    weight_decay: Decay = setting(0.1, "decoupled weight decay of all but biases and norms")
    interpolate: bool = setting(
        False,
        "end between the weights of --init and the trained ones, where the loss is lowest",
    )
    momentum: Probability = setting(0.9, "how long Muon remembers gradients")
    beta1: Probability = setting(0.9, "how long AdamW remembers gradients")
    beta2: Probability = setting(0.99, "how long AdamW remembers squared gradients")
    grad_clip: Positive = setting(1.0, "largest norm of the gradient; a larger one is scaled down")
    num_evals: Count = setting(10, "how many times to evaluate, the last one included")
    checkpoint_seconds: Positive = setting(
        30.0, "about this many seconds from one checkpoint to the next"
    )
    keep: Kept | None = setting(
        None, "keep the weights of this many steps, from step 0 to the last: runs/my@0, ..."
    )
    eval_tokens: Count = setting(131_072, "evaluate on at most this many tokens")
    sample_prompt: str = setting("", "how each sample of the training begins", "TEXT")
    seed: Seed = setting(0, "the same seed draws the same batches and initial weights")
    device: str = setting(
        "auto", "where to compute: auto (the fastest that is right), cpu, cuda, cuda:1 or mps"
    )
    precision: Literal["auto", "float32", "bfloat16", "float16"] = setting(
        "auto", "of matrix products; auto: whichever is fastest"
    )
    compile: Literal["auto", "on", "off"] = setting(
        "auto", "compile with torch.compile; auto: on CUDA, from 5 minutes or 20,000 steps on"
    )
    log: Literal["tensorboard", "wandb"] | None = setting(
        None, "also log the figures to this program"
    )

    def _check(self) -> None:
        require(self, "sample_prompt", is_utf8(self.sample_prompt), "text in UTF-8")
