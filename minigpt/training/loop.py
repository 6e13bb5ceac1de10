"""The training loop: batch, forward, backward, step; now and then evaluate, save, report."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ..config import TrainConfig, UserError
from ..dataset import Dataset, sample_batch
from ..device import autocast
from ..model import GPT
from ..run_folder import WEIGHTS, save_weights
from .checkpoint import TrainingState, load_checkpoint, save_checkpoint
from .compilation import Loss, compiled_loss, loss_function, worth_compiling
from .evaluation import Evaluation, evaluate
from .interruption import Interrupted, Interruption
from .optimizer import make_optimizer
from .report import Report
from .schedule import learning_rate, progress


@dataclass(frozen=True)
class Trainee:
    """What is trained, on what, and where it goes."""

    model: GPT
    dataset: Dataset
    config: TrainConfig
    folder: Path
    precision: torch.dtype


def train(
    trainee: Trainee,
    report: Report,
    *,
    seconds_left: Callable[[], float],
    sample: Callable[[], str],
    resume: bool = False,
) -> TrainingState:
    """Train until the steps or the time are used up, keeping the best weights.

    Args:
        trainee: model, data, config, folder.
        report: told of every step and evaluation.
        seconds_left: time until the whole command should be over.
        sample: makes a text with the model as it is.
        resume: continue from the checkpoint in the folder.

    Returns:
        Where the training ended.

    Raises:
        UserError: if the loss is no longer a number.
        Interrupted: by SIGINT or SIGTERM, after saving the state.
    """
    model, config = trainee.model, trainee.config
    optimizer = make_optimizer(model, config)
    state = TrainingState()
    if resume:
        state = load_checkpoint(trainee.folder, model, optimizer)
    model.train()
    loss_of = _loss(trainee, report)
    clock = Clock(state.seconds)
    limit = clock.seconds() + seconds_left() - _time_to_evaluate(trainee)
    with Interruption() as interruption:
        while True:
            done = progress(state.step, config.steps, clock.seconds(), limit)
            if done * config.evaluations >= state.evaluations + 1:
                state.evaluations = math.floor(done * config.evaluations)
                state.seconds = clock.seconds()
                _evaluate_and_save(trainee, optimizer, state, report, sample)
            if done >= 1.0:
                return state
            if interruption.signal_number is not None:
                state.seconds = clock.seconds()
                save_checkpoint(trainee.folder, model, optimizer, state)
                raise Interrupted(interruption.signal_number)
            _set_rate(optimizer, config, done)
            loss = _step(trainee, loss_of, optimizer, state.step)
            state.step += 1
            report.step(state.step, loss, done, seconds_left())


class Clock:
    """Seconds of training, those of earlier sittings included."""

    def __init__(self, before: float):
        self._start = time.monotonic() - before

    def seconds(self) -> float:
        """Time spent training so far."""
        return time.monotonic() - self._start


def _loss(trainee: Trainee, report: Report) -> Loss:
    """The model's loss, compiled where that pays; without touching weights or random state."""
    if not worth_compiling(trainee.config):
        return loss_function(trainee.model)

    def try_out(loss: Loss) -> None:
        with torch.random.fork_rng(), autocast(_device(trainee), trainee.precision):
            value = loss(*_batch(trainee, step=0))
            value.backward()
        trainee.model.zero_grad()

    report.say("compiling the model (the first time takes about 20 seconds) ...")
    loss, problem = compiled_loss(trainee.model, try_out)
    if problem:
        report.say(f"not compiled, which costs some speed: {problem}")
    return loss


def _set_rate(optimizer: torch.optim.Optimizer, config: TrainConfig, done: float) -> None:
    rate = learning_rate(done, config.learning_rate, config.warmup, config.final_rate)
    for group in optimizer.param_groups:
        group["lr"] = rate


def _step(trainee: Trainee, loss_of: Loss, optimizer: torch.optim.Optimizer, step: int) -> float:
    """One step of gradient descent; returns the batch's loss, nats a token."""
    inputs, targets = _batch(trainee, step)  # each (b, T)
    with autocast(inputs.device, trainee.precision):
        loss = loss_of(inputs, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(trainee.model.parameters(), trainee.config.grad_clip)
    optimizer.step()
    optimizer.zero_grad()
    value = loss.item()
    if not math.isfinite(value):
        raise UserError(
            f"the loss became {value} at step {step}; train again with a lower --learning-rate "
            f"(the best weights so far, if any, are in {trainee.folder})"
        )
    return value


def _batch(trainee: Trainee, step: int) -> tuple[Tensor, Tensor]:
    inputs, targets = sample_batch(
        trainee.dataset.train,
        trainee.config.batch_size,
        trainee.model.config.context_length,
        seed=trainee.config.seed,
        step=step,
    )
    return inputs.to(_device(trainee)), targets.to(_device(trainee))


def _evaluate(trainee: Trainee) -> Evaluation:
    return evaluate(
        trainee.model,
        trainee.dataset.validation,
        torch.tensor(trainee.dataset.tokenizer.byte_lengths()),
        max_tokens=trainee.config.eval_tokens,
        precision=trainee.precision,
    )


def _evaluate_and_save(
    trainee: Trainee,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
    report: Report,
    sample: Callable[[], str],
) -> None:
    """Judge the model; keep its weights if they are the best; save the state; show a sample."""
    result = _evaluate(trainee)
    is_best = state.best_loss is None or result.loss < state.best_loss
    if is_best:
        state.best_loss, state.best_bits_per_byte = result.loss, result.bits_per_byte
        state.best_step = state.step
        save_weights(trainee.model, trainee.folder / WEIGHTS)
    save_checkpoint(trainee.folder, trainee.model, optimizer, state)
    report.evaluation(state.step, result, is_best, sample())


def _time_to_evaluate(trainee: Trainee) -> float:
    """Seconds to keep for the end: the last evaluation, its sample and its files."""
    start = time.monotonic()
    _evaluate(trainee)
    return 1.5 * (time.monotonic() - start) + 2.0


def _device(trainee: Trainee) -> torch.device:
    return trainee.model.token_embedding.weight.device
