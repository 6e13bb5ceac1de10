"""A user's script in which a type checker finds nothing wrong."""
# pyright: strict

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import minigpt
from minigpt import (
    GPT,
    Explanation,
    GPTConfig,
    Run,
    Sample,
    StopTraining,
    TrainConfig,
    Trainer,
    UserError,
)


class Mine(GPT):
    """A GPT whose logits are cooler."""

    def __init__(self, config: GPTConfig, temperature: float = 2.0) -> None:
        super().__init__(config)
        self.temperature = temperature

    def cooler(self, token_ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self(token_ids)  # (b, T, vocab_size)
        return logits / self.temperature


class Enough:
    def on_evaluation(self, trainer: Trainer, figures: dict[str, float]) -> None:
        if figures["val_loss"] < 5.0:
            raise StopTraining


def no_first_token(ids: NDArray[np.int64], logits: NDArray[np.float32]) -> NDArray[np.float32]:
    logits[:, 0] = -np.inf
    return logits


def constant(done: float) -> float:
    return 1.0


def own_optimizers(model: nn.Module) -> list[torch.optim.Optimizer]:
    return [torch.optim.SGD(model.parameters(), lr=0.1)]


def write(run: Run, prompt: str) -> Iterator[str]:
    writer = minigpt.load(run, device="cpu")
    yield writer.generate(prompt, max_new_tokens=50, temperature=0.8, seed=1)
    yield from writer.stream(prompt, processors=[no_first_token])

    samples: list[Sample] = writer.samples(prompt, samples=3)
    yield from (sample.text for sample in samples)
    yield from (token.text for token in writer.next_tokens(prompt, k=5))

    maps = minigpt.attention_maps(writer, prompt)
    yield f"{maps.tokens} {maps.weights.shape}"
    why: Explanation = writer.explain(prompt, 1)
    yield f"{why.logit:.2f} {why.parts['embedding']:.2f} {why.words[0]:.2f} {why.heads['1.1']:.2f}"
    yield f"{writer.score(prompt).bits_per_byte:.3f}"


def train_mine(text: Path) -> float:
    dataset = minigpt.prepare(text, vocab_size=400)
    model = Mine(GPTConfig(vocab_size=dataset.tokenizer.vocab_size, emb_dim=32))
    config = TrainConfig(steps=20, device="cpu")
    trainer = Trainer(
        model,
        dataset,
        config,
        optimizers=own_optimizers,
        schedule=constant,
        callbacks=[Enough()],
    )
    trainer.train()

    token_ids = torch.zeros(1, 8, dtype=torch.long)  # (b, T)
    loss = model.loss(token_ids, token_ids.roll(-1, dims=1))
    return loss.item()


try:
    trained = minigpt.train("my.txt", minutes=2, num_layers=2)
    print(trained / "model.safetensors", *write(trained, "Once upon a time"))
except UserError as error:
    print(error)
