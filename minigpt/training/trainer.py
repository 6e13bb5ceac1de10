"""The training loop: batch, forward, backward, step; now and then evaluate, save, report."""

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn

from .. import UserError
from ..config import TrainConfig
from ..data.batches import Dataset, sample_batch
from ..model import GPT
from ..runs import WEIGHTS, save_weights
from .checkpoint import TrainingState, load_checkpoint, save_checkpoint
from .compilation import Loss, compile_loss, not_compiled, record_of
from .divergence import DivergedError, check_finite, check_learning
from .evaluation import Evaluation, evaluate
from .interruption import Interrupted, Interruption
from .optimizer import make_optimizer
from .processes import ALONE, Processes
from .report import Report
from .schedule import learning_rate, progress, smoothed
from .speed import autocast

_SETBACKS = 2  # so often a training that went wrong is tried again with half the rate
_EARLY = 0.8  # of the training; then the text is read as it will be in use
_SAVING_SHARE = 0.05  # of the time may go into checkpoints


@dataclass(frozen=True)
class Trainee:
    """What is trained, on what, and where it goes."""

    model: GPT
    dataset: Dataset
    config: TrainConfig
    folder: Path
    precision: torch.dtype
    processes: Processes = ALONE

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.model.token_embedding.weight.device

    @property
    def most_steps(self) -> int | None:
        """Steps in which the text is read as often as it may be."""
        if self.config.max_epochs is None:
            return None
        tokens_a_step = self.config.batch_size * self.model.config.context_length
        return math.ceil(self.config.max_epochs * len(self.dataset.train) / tokens_a_step)

    @cached_property
    def byte_lengths(self) -> Tensor:
        """Bytes of text that each token stands for: ``(vocab_size,)``."""
        return torch.tensor(self.dataset.tokenizer.byte_lengths())

    def batches(self, step: int, done: float = 0.0) -> list[tuple[Tensor, Tensor]]:
        """Inputs and targets ``(b, T)`` of a training step, or of this process's share in it, in
        parts that are computed one after the other.

        Args:
            step: its number.
            done: share of the training that is done; near the end, nothing is respelled or cut.
        """
        is_early = done < _EARLY
        share = self.config.token_split_prob if is_early else 0.0
        rows = self.processes.share(self.config.batch_size)
        inputs, targets = sample_batch(
            self.dataset.train,
            self.config.batch_size,
            self.model.config.context_length,
            seed=self.config.seed,
            step=step,
            sources=self.dataset.sources,
            weights=self.dataset.weights,
            rows=rows,
            splitter=self.dataset.token_splitter if share else None,
            split_prob=share,
        )
        at_once = self.config.micro_batch_size or len(inputs)
        length = (self.config.warmup_context if is_early else None) or inputs.shape[1]
        parts = zip(inputs.split(at_once), targets.split(at_once), strict=True)
        return [
            (_cut(x, length).to(self.device), _cut(y, length).to(self.device)) for x, y in parts
        ]

    def evaluation(self, max_tokens: int) -> Evaluation:
        """The model's loss on the validation text, or on so many tokens of it."""
        return evaluate(
            self.model,
            self.dataset.validation,
            self.byte_lengths,
            max_tokens=max_tokens,
            precision=self.precision,
            processes=self.processes,
        )


def train(
    trainee: Trainee,
    report: Report,
    *,
    seconds_left: Callable[[], float],
    sample: Callable[[GPT], str],
    resume: bool = False,
) -> TrainingState:
    """Train until the steps or the time are used up, keeping the best weights.

    Args:
        trainee: model, data, config, folder.
        report: told of every step and evaluation.
        seconds_left: time until the whole command should be over.
        sample: makes a text with a model.
        resume: continue from the checkpoint in the folder.

    Returns:
        Where the training ended.

    Raises:
        UserError: if there is nothing to resume from, or training keeps going wrong.
        Interrupted: by SIGINT or SIGTERM, after saving the state.
    """
    training = _Training(trainee, report, seconds_left, sample)
    if resume:
        training.go_back()
    training.prepare()
    if not resume:
        training.save()  # a checkpoint to go back to, from the first step on
    with Interruption(report.say) as interruption:
        while True:
            try:
                done = training.progress()
                signal_number = trainee.processes.highest(interruption.signal_number or 0)
                if signal_number and done < 1.0:
                    raise Interrupted(signal_number, saved=training.save())
                if training.is_time_to_evaluate(done):
                    training.evaluate(done)
                    training.save()
                if done >= 1.0:
                    return training.state
                if training.is_time_to_save():
                    training.save()
                training.step(done)
            except DivergedError as problem:
                training.set_back(problem)


class Clock:
    """Seconds of training, those of earlier sittings included."""

    def __init__(self, before: float):
        self._start = time.monotonic() - before

    def seconds(self) -> float:
        """Time spent training so far."""
        return time.monotonic() - self._start


class _Training:
    """A training under way: the optimizer, the counters, the clock, and what to do with them."""

    def __init__(
        self,
        trainee: Trainee,
        report: Report,
        seconds_left: Callable[[], float],
        sample: Callable[[GPT], str],
    ):
        self.trainee, self.model, self.config = trainee, trainee.model, trainee.config
        self.processes = trainee.processes
        self.report, self.seconds_left, self.sample = report, seconds_left, sample
        self.optimizer = make_optimizer(
            self.model, self.config, trainee.precision, trainee.processes
        )
        self.state = TrainingState()
        self.clock = Clock(0.0)
        self._next_save = 0.0

    def prepare(self) -> None:
        """Compile, and find out how much time there is."""
        self.model.train()
        self.loss_of = _loss(self.trainee, self.report)
        seconds = self._time_to_evaluate()
        self.clock = Clock(self.state.seconds)
        # Time stays for the last evaluation, its sample and its files.
        seconds_left = self.processes.from_first(self.seconds_left()) - 1.5 * seconds - 2.8
        self.limit = self.state.seconds + seconds_left
        # A run that is continued for longer than planned has its evaluations spread anew.
        due = math.floor(self.progress() * self.config.num_evals)
        self.state.evaluations = min(self.state.evaluations, due)

    def _time_to_evaluate(self) -> float:
        """Seconds that an evaluation will take; on fewer tokens if that were too long.

        The evaluations together may take a tenth of the time; by steps, time is no matter.
        """
        few = 4 * self.model.config.context_length
        self.trainee.evaluation(few)  # the first one is slow
        start = time.monotonic()
        self.trainee.evaluation(few)
        per_token = self.processes.from_first(time.monotonic() - start) / few
        seconds_left = self.processes.from_first(self.seconds_left())
        if self.config.steps is None and self.state.step == 0:
            share = 0.1 * max(seconds_left, 0.0) / self.config.num_evals
            self.state.eval_tokens = max(few, min(self.config.eval_tokens, int(share / per_token)))
        elif self.state.step == 0:
            self.state.eval_tokens = self.config.eval_tokens
        tokens = min(self.state.eval_tokens, len(self.trainee.dataset.validation))
        return per_token * tokens

    def progress(self) -> float:
        """Share of the training that is done, by the first process's clock."""
        self.state.seconds = self.processes.from_first(self.clock.seconds())
        most = self.trainee.most_steps
        return progress(self.state.step, self.config.steps, self.state.seconds, self.limit, most)

    def is_time_to_evaluate(self, done: float) -> bool:
        """Whether the next of the evaluations, spread evenly over the training, is due."""
        return done * self.config.num_evals >= self.state.evaluations + 1

    def is_time_to_save(self) -> bool:
        """Whether the last checkpoint is old enough for the time that saving takes."""
        return self.state.seconds >= self._next_save

    def step(self, done: float) -> None:
        """One step of gradient descent."""
        config, state = self.config, self.state
        rate = learning_rate(done, config.learning_rate, config.warmup_ratio, config.min_lr_ratio)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * 0.5**state.setbacks
        torch.manual_seed(self.processes.seed(config.seed, state.step))  # for dropout
        batches = self.trainee.batches(state.step, done)
        loss = self._backward(batches)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), config.grad_clip)
        check_finite("loss", loss)
        check_finite("gradient", self.processes.whole(norm).item())
        bits = loss / math.log(2) / self._bytes_per_token(batches)
        self.optimizer.step()
        self.optimizer.zero_grad()
        state.train_loss = smoothed(state.train_loss, loss, state.step)
        state.train_bits_per_byte = smoothed(state.train_bits_per_byte or bits, bits, state.step)
        state.step += 1
        check_learning(state.train_loss, self.model.config.vocab_size)
        self.report.step(state, done, self._seconds_left(done))

    def _backward(self, batches: list[tuple[Tensor, Tensor]]) -> float:
        """The gradients of the mean loss over these batches of all processes, and that loss."""
        rows = sum(len(inputs) for inputs, _ in batches)
        total = torch.zeros((), device=self.trainee.device)
        for i, (inputs, targets) in enumerate(batches, start=1):  # each (b, T)
            self.processes.average_now(self.loss_of, i == len(batches))
            with autocast(inputs.device, self.trainee.precision):
                loss = self.loss_of(inputs, targets) * (len(inputs) / rows)
            loss.backward()
            total += loss.detach()
        return self.processes.mean(total.item())

    def _bytes_per_token(self, batches: list[tuple[Tensor, Tensor]]) -> float:
        """Of the targets of all processes; fewer where they are respelled."""
        targets = torch.cat([targets.flatten() for _, targets in batches]).cpu()
        size = int(self.trainee.byte_lengths[targets].sum())
        return self.processes.mean(max(size, 1) / len(targets))

    def _seconds_left(self, done: float) -> float:
        """Time to the end: at the pace so far, but no more than there is."""
        at_this_pace = self.state.seconds * (1.0 - done) / max(done, 1e-9)
        return at_this_pace if self.config.steps else min(at_this_pace, self.seconds_left())

    def evaluate(self, done: float) -> None:
        """Judge the model, keep its weights if they are the best, show a sample."""
        state = self.state
        state.evaluations = math.floor(done * self.config.num_evals)
        state.finished = done >= 1.0
        result = self.trainee.evaluation(state.eval_tokens)
        check_finite("validation loss", result.loss)
        self._check_weights()
        is_best = state.best_loss is None or result.loss < state.best_loss
        by_first = self.processes.by_first
        model, path = self.processes.whole_model(self.model), self.trainee.folder / WEIGHTS
        if is_best and self._written(
            "the best weights", lambda: by_first(lambda: save_weights(model, path))
        ):
            state.best_loss, state.best_bits_per_byte = result.loss, result.bits_per_byte
            state.best_step = state.step
        sample = by_first(lambda: self.sample(model))
        row = self.report.evaluation(state, result, is_best, sample)
        self._written("the figures", lambda: by_first(lambda: self.report.write(row)))

    def save(self) -> bool:
        """Write a checkpoint; if that fails, say so. Returns whether it is written.

        Raises:
            DivergedError: if a weight is no longer a number.
        """
        start = time.monotonic()
        self._check_weights()
        is_written = self._written(
            "the checkpoint",
            lambda: save_checkpoint(
                self.trainee.folder, self.model, self.optimizer, self.state, self.processes
            ),
        )
        took = self.processes.from_first(time.monotonic() - start)
        interval = max(self.config.checkpoint_seconds, took / _SAVING_SHARE)
        self._next_save = self.state.seconds + took + interval
        return is_written

    def _check_weights(self) -> None:
        norms = torch.stack(torch._foreach_norm(list(self.model.parameters())))
        check_finite("size of the weights", self.processes.whole(norms.sum()).item())

    def go_back(self) -> None:
        """Return to the last checkpoint that is whole."""
        folder = self.trainee.folder
        self.state, problems = load_checkpoint(folder, self.model, self.optimizer, self.processes)
        self.state.finished = False
        for problem in problems:
            self.report.say(f"{problem}; going back to the one before it")

    def set_back(self, problem: DivergedError) -> None:
        """Try again from the last checkpoint with half the learning rate, but not for ever."""
        setbacks = self.state.setbacks + 1
        rate = self.config.learning_rate * 0.5**setbacks
        if setbacks > _SETBACKS:
            raise UserError(
                f"{problem} at step {self.state.step:,}, for the third time and with a lower rate; "
                f"the best weights so far are in {self.trainee.folder}; train again with "
                f"--learning-rate {rate:.1g} or less"
            )
        step = self.state.step
        self.optimizer.zero_grad()
        self.go_back()
        self.state.setbacks = setbacks
        self.report.say(
            f"{problem} at step {step:,}: back to step {self.state.step:,}, "
            f"with a learning rate of {rate:.2g}"
        )

    def _written(self, what: str, write: Callable[[], None]) -> bool:
        """Whether `write` went well; if not, say what could not be written."""
        try:
            write()
        except OSError as error:
            reason = error.strerror or str(error)
            self.report.say(
                f"could not write {what} to {self.trainee.folder}: {reason}; "
                "what is there stays as it was, training goes on"
            )
            return False
        return True


def _cut(batch: Tensor, length: int) -> Tensor:
    """Windows ``(b, T)`` in k pieces of `length` at most: ``(b k, T // k)``."""
    b, T = batch.shape
    k = -(-T // length)
    return batch[:, : T - T % k].reshape(b * k, T // k)


def _loss(trainee: Trainee, report: Report) -> nn.Module:
    """The model's loss, compiled where that pays; without touching its weights.

    Raises:
        UserError: if it cannot be compiled and the model is sharded, which has then computed in
            part on some of the processes.
    """
    plain = Loss(trainee.model)
    loss = trainee.processes.averaged(plain)
    if trainee.config.compile != "on":
        return loss

    def try_out() -> None:
        for done in (0.0, 1.0):  # windows are shorter early in the training
            inputs, targets = trainee.batches(step=0, done=done)[0]
            with autocast(trainee.device, trainee.precision):
                value = loss(inputs, targets)
            value.backward()
            trainee.model.zero_grad()

    record = record_of(trainee.config, trainee.model.config, trainee.device, trainee.processes.size)
    if not record.exists():
        report.say("compiling the model, which this first time takes up to a minute ...")
    problems = trainee.processes.gather(compile_loss(plain, try_out))
    if problem := next(filter(None, problems), None):
        if trainee.processes.is_sharded:
            raise UserError(f"cannot compile the model: {problem}; use --compile off")
        not_compiled(plain)
        report.say(f"not compiled, which costs some speed: {problem}")
    else:
        with contextlib.suppress(OSError):  # it only saves time
            record.touch()
    return loss
