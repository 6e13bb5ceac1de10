"""The training loop: batch, forward, backward, step; now and then evaluate, save, report."""

import contextlib
import hashlib
import math
import shlex
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from .. import UserError
from ..config import EvaluationConfig, TrainConfig
from ..data.batches import Dataset, TokenSequence, sample_batch
from ..data.counting import fit_in_time
from ..model import GPT
from ..runs.folder import WEIGHTS, has_checkpoint
from ..runs.weights import read_best, save_weights
from . import distributed, workers
from .checkpoint import TrainingState, load_checkpoint, save_checkpoint
from .compilation import Loss, compile_loss
from .evaluation import Evaluation, evaluate_tokens, spread_windows
from .interruption import GracefulStop, Interrupted
from .messages import say
from .optimizer import averaged, make_optimizers, prepare_step
from .precision import autocast
from .report import Report
from .schedule import EARLY, learning_rate, progress, smoothed

MIN_SECONDS = 5.0  # of training, however late it starts; a tenth of the minutes if that is less
_FEWEST_WINDOWS = 4  # to evaluate on
_SAVING_SHARE = 0.05  # of the time may go into checkpoints
_COUNTING_SHARE = 0.015  # of the time may go into the counting model, and a little to apply it
_COUNTING_AT = 0.05  # of the training: the first step does not wait for it
_FAR_ABOVE = 2.0  # nats a token: a loss that has grown by so much will not fall again


class Trainer:
    """A model on its device, what it is trained on, its optimizers, and where the training stands.

    `precision` is that of matrix products; the command should be over at `deadline`, by `clock`.
    """

    def __init__(
        self,
        model: GPT,
        dataset: Dataset,
        config: TrainConfig,
        folder: Path,
        *,
        precision: torch.dtype,
        report: Report,
        deadline: float,
        sample: Callable[[GPT], str],
        clock: Callable[[], float] = time.monotonic,
    ):
        self.model, self.dataset, self.config, self.folder = model, dataset, config, folder
        self.precision, self.report, self.deadline = precision, report, deadline
        self.sample, self.clock = sample, clock
        self.device = model.token_embedding.weight.device
        self.byte_lengths = torch.tensor(dataset.tokenizer.byte_lengths())  # (vocab_size,)
        self.optimizers = make_optimizers(model, config, precision)
        self.state = TrainingState()
        # In an evaluation: no more than in a step, which takes more memory for each.
        in_a_step = config.micro_batch_size or config.batch_size // distributed.world_size()
        self._windows_at_once = min(in_a_step, EvaluationConfig.batch_size)
        self._started = clock()  # when training began, had there been no interruptions
        self._limit = 0.0  # seconds that training may take
        self._max_steps: int | None = None  # in which the text is read as often as it may be
        if config.max_epochs is not None:
            tokens = config.max_epochs * len(dataset.train)
            self._max_steps = math.ceil(tokens / (config.batch_size * model.config.context_length))
        self._next_save = 0.0
        self._is_kept = True  # whether the latest of the best weights could be written
        self._counting_at: float | None = None  # share of the training; None once it is done

    def restore(self) -> None:
        """Return to the last checkpoint that is whole; UserError if there is none that fits."""
        self.state, problems = load_checkpoint(self.folder, self.model, self.optimizers)
        self.state.finished = False
        # The best weights may be newer than this checkpoint, so their file says how good they are.
        best = distributed.on_main(lambda: read_best(self.folder / WEIGHTS)) or {}
        self.state.best_loss = best.get("val_loss")
        self.state.best_bits_per_byte = best.get("val_bits_per_byte")
        self.state.best_step = int(best.get("step", 0))
        for problem in problems:
            say(f"{problem}; going back to the one before it")

    def train(self) -> TrainingState:
        """Train until the steps or the time are used up, keeping the best weights.

        Raises UserError if training diverges or the best weights could not be written, and
        Interrupted after a SIGINT, SIGTERM or SIGHUP.
        """
        config, dropout = self.config, self.model.config.attention_dropout
        can_share = workers.can_share(self.device, config.compile, dropout)
        with workers.team((can_share and config.num_workers) or 1), GracefulStop() as stop:
            self._prepare()
            while True:
                done, signal_number = self._progress(stop.signal_number)
                if signal_number and done < 1.0:
                    is_saved = self._save_unfinished()  # before a word is said
                    raise Interrupted(signal_number, saved=is_saved)
                is_due = done * self.config.num_evals >= self.state.evaluations + 1
                if self._counting_at is not None and (is_due or done >= self._counting_at):
                    self._count(done)
                if is_due:
                    self._evaluate(done)
                    self._save()
                if done >= 1.0:
                    self._check_kept()
                    return self.state
                if self.state.step > 0 and self.state.seconds >= self._next_save:
                    self._save()
                self._step(done)

    # Before the first step

    def _prepare(self) -> None:
        """Compile, and find out how much time there is."""
        self.model.train()
        self._loss = self._make_loss()
        seconds = self._time_an_evaluation()
        self._started = self.clock() - self.state.seconds
        # Keep time for the last two evaluations, a sample, files and leaving.
        left = self._seconds_to_deadline() - 2.5 * seconds - 1.5
        self._limit = self.state.seconds + max(left, min(MIN_SECONDS, 6 * self.config.minutes))
        # A run that is continued for longer than planned has its evaluations spread anew.
        begun, _ = self._progress()
        due = math.floor(begun * self.config.num_evals)
        self.state.evaluations = min(self.state.evaluations, due)
        self._counting_at = begun + _COUNTING_AT * (1.0 - begun)

    def _make_loss(self) -> nn.Module:
        """The model's loss, compiled if the config says so; its weights stay as they are."""
        plain = Loss(self.model)
        loss = distributed.averaged(plain)
        if self.config.compile != "on":
            return loss

        def try_out() -> None:
            for done in (0.0, 1.0):  # windows are shorter early in the training
                inputs, targets = self._parts(step=0, done=done)[0]
                with autocast(self.device, self.precision):
                    value = loss(inputs.to(self.device), targets.to(self.device))
                value.backward()
                self.model.zero_grad()

        say("compiling the model, which takes up to a minute ...")
        compile_loss(plain, try_out)
        return loss

    def _time_an_evaluation(self) -> float:
        """Seconds that an evaluation takes. By time, choose how many tokens to evaluate on, so
        that all evaluations together take a tenth of it.

        As many windows are computed at once as there will be later, so that memory that does not
        suffice is missed now.
        """
        T, most = self.model.config.context_length, self.config.eval_tokens
        windows = max(self._windows_at_once, workers.count()) * distributed.world_size()
        count = min(windows * T, max(most, T))
        beginning = self.dataset.validation[: count + 1]
        self._evaluation(count, beginning)  # the first one is slow
        start = self.clock()
        result = self._evaluation(count, beginning)
        per_token = distributed.on_main(lambda: self.clock() - start) / result.tokens

        if self.state.step == 0:
            self.state.eval_tokens = most
            if self.config.steps is None:
                seconds = 0.1 * max(self._seconds_to_deadline(), 0.0) / self.config.num_evals
                affordable = max(_FEWEST_WINDOWS * T, int(seconds / per_token))
                self.state.eval_tokens = min(most, affordable)
        return per_token * min(self.state.eval_tokens, len(self.dataset.validation))

    # The steps of the loop

    def _progress(self, signal_number: int = 0) -> tuple[float, int]:
        """The share of the training that is done, by the clock of rank 0, and any rank's signal."""
        seconds = self.clock() - self._started if distributed.is_main() else 0.0
        self.state.seconds, signal_on_any = distributed.highest(seconds, signal_number)
        state, steps = self.state, self.config.steps
        done = progress(state.step, steps, state.seconds, self._limit, self._max_steps)
        return done, int(signal_on_any)

    def _step(self, done: float) -> None:
        """One step of gradient descent."""
        config, state = self.config, self.state
        rate = learning_rate(done, config.learning_rate, config.warmup_ratio, config.min_lr_ratio)
        prepare_step(self.optimizers, state.step, rate)
        # A dropout seed for each step and rank: resuming needs no random state.
        place = f"{config.seed} {state.step} {distributed.rank()}"
        digest = hashlib.sha256(place.encode()).digest()
        torch.manual_seed(int.from_bytes(digest[:8], "little"))
        parts = self._parts(state.step, done)
        loss, norm, bytes_per_token = self._backward(parts)
        self._check_finite("loss", loss)
        self._check_finite("gradient", norm)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        bits = loss / math.log(2) / bytes_per_token
        if state.step == 0:
            state.first_loss = loss
        state.train_loss = smoothed(state.train_loss, loss, state.step)
        state.train_bits_per_byte = smoothed(state.train_bits_per_byte, bits, state.step)
        state.step += 1
        self._check_loss()
        self.report.step(state, done, state.seconds * (1.0 - done) / max(done, 1e-9))

    def _parts(self, step: int, done: float) -> list[tuple[Tensor, Tensor]]:  # of this rank
        T, rows = self.model.config.context_length, distributed.share(self.config.batch_size)
        return training_batch(self.dataset, self.config, T, step, done, rows)

    def _backward(self, parts: list[tuple[Tensor, Tensor]]) -> tuple[float, float, float]:
        """Compute the clipped gradients of the mean loss over the batch of all ranks. Returns that
        loss, the norm of the gradients before clipping, and the mean bytes of a target."""
        rows = sum(len(inputs) for inputs, _ in parts)

        def loss_of(part: tuple[Tensor, Tensor]) -> Tensor:
            inputs, targets = (ids.to(self.device) for ids in part)  # each (b, T)
            with autocast(self.device, self.precision):
                return self._loss(inputs, targets) * (len(inputs) / rows)

        if workers.count() > 1:
            total = workers.backward(loss_of, list(self.model.parameters()), parts)
        else:
            total = torch.zeros((), device=self.device)
            for part in parts:
                loss = loss_of(part)
                loss.backward()
                total += loss.detach()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_clip)
        found = torch.stack([total, norm]).tolist()  # one wait for the device
        size = sum(int(self.byte_lengths[targets].sum()) for _, targets in parts)
        count = sum(targets.numel() for _, targets in parts)
        loss_of_all, bytes_per_token = distributed.mean(found[0], max(size, 1) / count)
        return loss_of_all, found[1], bytes_per_token

    def _count(self, done: float) -> None:
        """See what counting alone gives, to compare the loss with."""
        self._counting_at = None
        if self.config.steps is None:
            seconds = _COUNTING_SHARE * 60 * self.config.minutes
        else:  # a second at least: a short training on a short text counts all of it
            seconds = max(_COUNTING_SHARE * self.state.seconds / done, 1.0)
        counted = distributed.on_main(partial(self._counted, seconds))
        self.report.marks.counted_tokens, self.report.marks.counting = counted

    def _counted(self, seconds: float) -> tuple[int, float]:
        """How many tokens can be counted in so many seconds, and the bits per byte that this gives
        on the tokens of the evaluations."""
        counting = fit_in_time(self.dataset.train, self.model.config.vocab_size, seconds)
        T, most = self.model.config.context_length, self.state.eval_tokens
        windows = spread_windows(self.dataset.validation, T, most)
        return counting.tokens, counting.bits_per_byte(windows, self.byte_lengths.numpy())

    def _evaluate(self, done: float) -> None:
        """Evaluate the average of the weights, keep it if it is the best, show a sample. At the
        end, when they hardly move, a model that has not yet learned what it could may be better
        without: then it is the last weights."""
        state = self.state
        state.evaluations, state.finished = math.floor(done * self.config.num_evals), done >= 1.0
        weights: contextlib.AbstractContextManager = averaged(self.optimizers)
        with averaged(self.optimizers):
            result = self._evaluation(state.eval_tokens)
        if state.finished and (last := self._evaluation(state.eval_tokens)).loss < result.loss:
            weights, result = contextlib.nullcontext(), last
        self._check_finite("validation loss", result.loss)
        is_best = state.best_loss is None or result.loss < state.best_loss
        with weights:
            self._check_weights()
            if is_best:
                self._keep_weights(result.loss, result.bits_per_byte)
            sample = distributed.on_main(lambda: self.sample(self.model))
        row = self.report.evaluation(state, result, is_best, sample)
        self._written("the figures", partial(self.report.write, row, sample, state.finished))
        if state.finished and not self._is_kept:  # continued, the run makes this evaluation again
            state.finished, state.evaluations = False, state.evaluations - 1

    def _evaluation(self, max_tokens: int, tokens: TokenSequence | None = None) -> Evaluation:
        """Of the model as it is now, on the validation text or on other tokens."""
        return evaluate_tokens(
            self.model,
            self.dataset.validation if tokens is None else tokens,
            self.byte_lengths,
            max_tokens=max_tokens,
            at_once=self._windows_at_once,
            precision=self.precision,
        )

    def _keep_weights(self, loss: float, bits: float) -> None:
        """Write the weights of the best evaluation so far."""
        path, state = self.folder / WEIGHTS, self.state
        best = {"val_loss": loss, "val_bits_per_byte": bits, "step": state.step}
        save = partial(save_weights, self.model, path, best)
        self._is_kept = self._written("the best weights", save)
        if self._is_kept:
            state.best_loss, state.best_bits_per_byte, state.best_step = loss, bits, state.step

    def _save_unfinished(self) -> bool:
        """Write a checkpoint, and the weights if there are only those that training began with."""
        is_written = self._save()
        if self.state.best_loss is None:
            with averaged(self.optimizers):
                self._keep_weights(math.inf, math.inf)
        return is_written

    def _save(self) -> bool:
        """Write a checkpoint; returns whether that succeeded."""
        start = self.clock()
        self._check_weights()
        save = partial(save_checkpoint, self.folder, self.model, self.optimizers, self.state)
        is_written = self._written("the checkpoint", save)
        took = distributed.on_main(lambda: self.clock() - start)
        interval = max(self.config.checkpoint_seconds, took / _SAVING_SHARE)
        self._next_save = self.state.seconds + took + interval
        return is_written

    def _written(self, what: str, write: Callable[[], None]) -> bool:
        """Whether `write` succeeds on rank 0; if not, say what could not be written."""
        try:
            distributed.on_main(write)
            return True
        except OSError as error:
            problem = f"could not write {what} to {self.folder}: {error.strerror or error}"
            say(f"{problem}; the old file stays as it was, training goes on")
            return False

    def _check_kept(self) -> None:
        """Raise a UserError if the best weights are not on disk."""
        if self._is_kept:
            return
        problem = f"the best weights could not be written to {self.folder / WEIGHTS}"
        if not has_checkpoint(self.folder):
            raise UserError(f"{problem}, nor a checkpoint; make room and train again")
        resume = f"--resume --out {shlex.quote(str(self.folder))}"
        raise UserError(f"{problem}; make room there, then continue with {resume}")

    def _check_weights(self) -> None:
        norms = torch.stack(torch._foreach_norm(list(self.model.parameters())))
        self._check_finite("size of the weights", norms.sum().item())

    def _check_loss(self) -> None:
        """Raise UserError if the loss is far above the one that training began with, and above that
        of guessing.

        A model that is trained further on another language begins far above guessing.
        """
        first, latest = self.state.first_loss, self.state.train_loss
        loss_of_guessing = math.log(self.model.config.vocab_size)
        if latest > max(first, loss_of_guessing) + _FAR_ABOVE:
            raise self._diverged(f"the loss grew from {first:.1f} to {latest:.1f} nats a token")

    def _check_finite(self, name: str, value: float) -> None:
        if not math.isfinite(value):
            raise self._diverged(f"the {name} became {value}")

    def _diverged(self, problem: str) -> UserError:
        """What to say when a loss, a gradient or a weight is not finite, or the loss has grown."""
        step, rate = self.state.step, self.config.learning_rate / 4
        if step == 0:
            return UserError(f"cannot train from these weights: {problem}")
        kept = f"the best weights so far are in {self.folder}; " if self.state.best_step else ""
        advice = f"train again with --learning-rate {rate:.1g} or less"
        return UserError(f"{problem} at step {step:,}; {kept}{advice}")

    def _seconds_to_deadline(self) -> float:
        return distributed.on_main(lambda: self.deadline - self.clock())


def training_batch(
    dataset: Dataset, config: TrainConfig, context_length: int, step: int, done: float, rows: slice
) -> list[tuple[Tensor, Tensor]]:
    """Inputs and targets ``(b, T)`` of some rows of a training step's batch, in parts that are
    computed in turn or by workers. Near the end, tokens are not split and windows not cut.
    """
    is_early = done < EARLY
    split_prob = config.token_split_prob if is_early else 0.0
    inputs, targets = sample_batch(
        dataset.train,
        config.batch_size,
        context_length,
        seed=config.seed,
        step=step,
        rows=rows,
        splitter=dataset.token_splitter if split_prob else None,
        split_prob=split_prob,
    )
    at_once = min(config.micro_batch_size or len(inputs), len(inputs))
    at_once = math.ceil(at_once / workers.count())
    length = (config.warmup_context if is_early else None) or context_length
    parts = zip(inputs.split(at_once), targets.split(at_once), strict=True)
    return [(_cut(x, length), _cut(y, length)) for x, y in parts]


def _cut(batch: Tensor, length: int) -> Tensor:
    """Windows ``(b, T)`` cut into k pieces of `length` at most: ``(b k, T // k)``."""
    b, T = batch.shape
    k = -(-T // length)
    return batch[:, : T - T % k].reshape(b * k, T // k)
