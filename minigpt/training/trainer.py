"""The training loop: take a step and report it; now and then evaluate and save."""

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import torch
from torch import nn
from torch.optim import Optimizer

from .. import UserError
from ..config import TrainConfig
from ..data.batches import Dataset
from ..model import GPT, evaluating, same_modes
from ..runs.folder import INTERPOLATION, is_kept
from ..runs.journal import Journal
from ..runs.listing import Run
from . import distributed, workers
from .callbacks import Figures, check_callbacks
from .candidates import Candidates
from .checkpoint import Trained, TrainingState
from .descent import GradientDescent
from .disk import Disk
from .divergence import Diverged, advice, check_finite, check_weights
from .folder import (
    check_same_text,
    kept_journal,
    locked_run,
    new_run,
    settings_of_run,
    update_settings,
)
from .interruption import GracefulStop, Interrupted
from .kept import make_keepers
from .lesson import as_lesson, check_lesson, threads_of
from .limits import TrainingLimits
from .loggers import make_loggers
from .loss import LossFunction
from .metrics import Metrics
from .optimizer import OptimizersOf, chosen_optimizers
from .picture import Picture
from .precision import resolved
from .progress import Progress
from .saving import BestWeights, Checkpoints
from .setup import (
    check_dataset,
    check_kinds,
    check_logits,
    context_length_of,
    device_for,
    same_random_numbers,
)
from .telling import Telling
from .validation import Validation


class Trainer:
    """Trains any network from token ids ``(b, T)`` to logits ``(b, T, vocab_size)``.

    At the end the module that was given holds the best weights by validation, or with
    `config.interpolate` the last ones that are nearly as good. It is moved to the device of the
    config; each of its parts stays in training or evaluation mode as it was.

    Args:
        model: any module with a parameter that is trained.
        dataset: the tokens to train on and to validate on.
        config: how to train. "auto" means float32, not compiled, unless the model is a `GPT`.
        out: the run's folder, made when training begins; None: nothing is written.
        loss: a function of the model, inputs and targets ``(b, T)`` that returns what to minimise,
            a scalar. A batch may come in parts, whose losses are weighted by their numbers of
            targets. What is shown and validated is the cross-entropy in nats a token in any case.
        optimizers: a list, or a function of the model that returns one; those of the config if
            unset. The learning rate of each group is its highest, and the schedule moves all of
            them in proportion.
        callbacks: objects with any of the methods `on_start`, `on_step`, `on_evaluation`,
            `on_save` and `on_end`, see docs/components.md.
        context_length: how many tokens the model sees. If unset, ``model.config.context_length``,
            or 256 if the model has none.
        files: further text files that a new run begins with, by name.
        started: when the command began, in time.monotonic's seconds: from then on the minutes
            count. If unset, from the beginning of the training.
        reserve: seconds of the minutes to leave free after training.
        journal: of the run, if it is open already.

    Attributes:
        state: how far the training has come.
        figures: what is known of it, as callbacks get it: the `step`, the `seconds` since the
            start, the share that is `done`, the `loss` and `bits_per_byte` of the step, its
            `learning_rate` and `gradient_norm`; smoothed over steps `train_loss` and
            `train_bits_per_byte`; `tokens_per_second`, `seconds_left`; of the last evaluation
            `val_loss`, `val_bits_per_byte`, `val_right`, the share of the tokens that the model
            found likeliest, and whether its weights are kept (`is_kept`); of the one at the end, if
            `config.interpolate`, the `interpolation`: how far its weights lie on the way from the
            first ones (0) to the trained ones (1). Callbacks may add others.

    Raises:
        UserError: if these do not fit together.
    """

    def __init__(
        self,
        model: nn.Module,
        dataset: Dataset,
        config: TrainConfig | None = None,
        *,
        out: str | Path | None = None,
        loss: LossFunction | None = None,
        optimizers: Sequence[Optimizer] | OptimizersOf | None = None,
        callbacks: Sequence[object] = (),
        context_length: int | None = None,
        files: Mapping[str, str] | None = None,
        started: float | None = None,
        reserve: float = 0.0,
        journal: Journal | None = None,
    ):
        distributed.join()
        config = TrainConfig() if config is None else config
        check_kinds(model, dataset, config, loss)
        distributed.check_batch(config.batch_size)
        check_lesson(config)
        check_callbacks(callbacks)

        self.model = model
        self.dataset = dataset
        self.out = None if out is None else Path(out)
        self.device = device_for(model, as_lesson(config).device)
        self.config = resolved(as_lesson(config), self.device, is_gpt=type(model) is GPT)
        self.context_length = context_length_of(model, context_length)
        self.tokens_per_step = config.batch_size * self.context_length
        self.vocab_size = dataset.tokenizer.vocab_size
        self.byte_lengths = torch.tensor(dataset.tokenizer.byte_lengths())  # (vocab_size,)
        check_dataset(dataset, self.context_length)
        check_logits(model.to(self.device), self.context_length, self.vocab_size)

        self.optimizers = chosen_optimizers(optimizers, model, self.config)
        self.state = TrainingState()
        self.figures: Figures = {}
        self.disk = Disk(self.out)  # writes what belongs into the run's folder
        self.journal = journal  # while it trains, on rank 0: what other programs are told
        self.started = 0.0  # in time.monotonic's seconds, as if there had been no interruption

        self._given_start = started
        self._reserve = reserve
        self._files = dict(files or {})
        self._callbacks = self._builtin_callbacks() + list(callbacks)
        self._optimizers_are_given = optimizers is not None
        self._trained = Trained.of(model, self.optimizers, self.config)
        self._descent = GradientDescent(
            self._trained,
            dataset,
            self.config,
            loss=loss,
            context_length=self.context_length,
            byte_lengths=self.byte_lengths,
        )
        self._best = BestWeights(model, self.disk)
        self._checkpoints = Checkpoints(self._trained, self.disk, config.checkpoint_seconds)
        self._validation = Validation(
            model,
            dataset,
            self.config,
            context_length=self.context_length,
            byte_lengths=self.byte_lengths,
        )
        self._candidates = Candidates(self._trained, self._validation)

    def _builtin_callbacks(self) -> list[object]:
        in_folder = [] if self.out is None else [Metrics(), Picture()]
        keepers = make_keepers(self.config.keep, self.out)
        return [Progress(), *in_folder, *keepers, *make_loggers(self.config.log, self.out)]

    def averaged(self) -> AbstractContextManager[None]:
        """Within, the model has the weights that an evaluation is of: averages over the latest
        steps."""
        return self._trained.average.in_place()

    def train(self) -> Run | None:
        """Train until the steps or the time are used up; the run, or None without a folder.

        Raises:
            UserError: if the folder is not free, training diverges or the best weights cannot be
                written.
            Interrupted: after a SIGINT, SIGTERM or SIGHUP; the run can be resumed.
        """
        if self.state.step > 0:
            raise UserError("this trainer has trained; make another one, or resume()")
        if self.out is None:
            with distributed.process_group():
                self._train()
            return None

        settings = settings_of_run(self.model, self.dataset, self.config, self.context_length)
        run = new_run(  # which is made when it is entered
            self.out,
            settings,
            self.model,
            self.dataset,
            files=self._files,
            journal=self.journal,
        )
        with distributed.process_group(), run as self.journal:
            self._train()
        return Run(self.out)

    def resume(self) -> Run:
        """Go on from the last checkpoint in the folder, as if there had been no interruption.

        Raises:
            UserError: as :meth:`train`, or if there is no checkpoint that fits.
            Interrupted: as :meth:`train`.
        """
        if self.out is None:
            raise UserError("a training is resumed from its folder: give out=")
        with (
            distributed.process_group(),
            locked_run(self.out),
            kept_journal(self.out, self.journal) as self.journal,
        ):
            distributed.on_main(check_same_text, self.out, self.dataset)
            self.state = self._checkpoints.load()
            self._best.note(self.state)
            if self.state.finished:
                self.state.finished = False
                self._checkpoints.save(self.state)  # so that it is unfinished from now on
            distributed.on_main(update_settings, self.out, self.config)
            self._train()
        return Run(self.out)

    # Before the first step and after the last

    def _train(self) -> None:
        """Train from where the state says, and leave the best weights in the model."""
        start = time.monotonic() if self._given_start is None else self._given_start
        self.started = start - self.state.seconds
        deadline = self.started + 60 * self.config.minutes - self._reserve
        steps_in_epoch = len(self.dataset.train) / self.tokens_per_step

        self.disk.journal = self.journal
        self._limits = TrainingLimits(self.config, deadline, steps_in_epoch)
        self._tell = Telling(self, self._callbacks, self._limits)
        self._tell.begin()

        with contextlib.ExitStack() as stack:
            stack.enter_context(same_random_numbers())
            stack.enter_context(same_modes(self.model))
            stack.enter_context(threads_of(self.config))
            stack.enter_context(workers.team(workers.number_for(self.model, self.config)))
            stop = stack.enter_context(GracefulStop())
            try:
                with self._descent.under_way():
                    self._prepare()
                    self._loop(stop)
                self._best.load()
            except Diverged as problem:
                kept_in = self.out if self.state.best_step > 0 else None
                rate = None if self._optimizers_are_given else self.config.learning_rate
                said = advice(problem, self.state.step, kept_in=kept_in, learning_rate=rate)
                raise said from None
            finally:
                self._tell.end()
            self._check_callbacks(is_over=True)

    def _prepare(self) -> None:
        """Find out how much time there is."""
        self._validation.plan(self.state, self.config, self._limits)
        seconds_at_end = self._candidates.seconds_at_end(self.state.eval_tokens)
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        self._limits.begin(self.state.seconds, seconds_at_end, parameters)

        # A run that is continued for longer than planned has its evaluations spread anew.
        begun = self._limits.done(self.state.step, self.state.seconds)
        due = math.floor(begun * self.config.num_evals)
        self.state.evaluations = min(self.state.evaluations, due)

        self._tell.start(begun)
        self._check_callbacks()

    # The loop

    def _loop(self, stop: GracefulStop) -> None:
        while True:
            done = self._progress(stop)
            evaluation_is_due = done * self.config.num_evals >= self.state.evaluations + 1
            if evaluation_is_due:  # the last one when all is done
                self._evaluate(done)
                self._save()

            if done >= 1.0:
                distributed.on_main(self.disk.check_is_there)
                self._best.check()
                return
            if self._checkpoints.is_due(self.state):
                self._best.write_again()
                self._save()

            result = self._descent.step(self.state, done)
            self._tell.step(result)

    def _progress(self, stop: GracefulStop) -> float:
        """The share of the training that is done, by the clock of rank 0.

        Raises Interrupted after a signal to any process or a `stop` in the journal, and what a
        callback has raised; the run is saved before. UserError if the folder is gone.
        """
        state = self.state
        callbacks = self._tell.callbacks

        # What one process has noticed, all of them have to act on.
        noticed = (
            self._limits.seconds() if distributed.is_main() else 0.0,
            stop.signal_number,
            self.journal is not None and self.journal.is_stop_asked,
            callbacks.wants_stop,
            callbacks.failure is not None,
            distributed.is_main() and self.disk.is_gone(),
        )
        in_any = distributed.highest(*noticed)
        state.seconds, signal_number, stop_asked, wants_stop, any_failed, is_gone = in_any

        if is_gone:
            raise self.disk.gone()
        if any_failed:
            self._raise_failure()

        done = 1.0 if wants_stop else self._limits.done(state.step, state.seconds)
        if (signal_number or stop_asked) and done < 1.0:
            is_saved = self._save_unfinished()  # before a word is said
            raise Interrupted(int(signal_number), saved=is_saved)
        return done

    # Evaluations and checkpoints

    def _evaluate(self, done: float) -> None:
        """Evaluate, and keep the weights if they are the best or nearly so."""
        state = self.state
        state.evaluations = math.floor(done * self.config.num_evals)
        state.finished = done >= 1.0

        candidate = self._candidates.best(state)
        result = candidate.result
        check_finite("validation loss", result.loss)
        keeps = is_kept(result.loss, state.best_loss, is_on_line=candidate.share is not None)
        if candidate.share is not None:
            self.figures[INTERPOLATION] = candidate.share

        with candidate.in_place():
            check_weights(self.model)
            if keeps:
                self._best.keep(state, result.loss, result.bits_per_byte)
            else:
                self._best.write_again()
            with evaluating(self.model):
                self._tell.evaluation(result, keeps, done)

        self._check_callbacks()
        if state.finished:
            self._best.write_again()
        if state.finished and not self._best.are_kept:
            # Continued, the run makes this evaluation again.
            state.finished = False
            state.evaluations -= 1

    def _save(self) -> None:
        """Write a checkpoint. What has passed since the last step counts: an evaluation, mostly."""
        self.state.seconds = distributed.on_main(self._limits.seconds)
        if self._checkpoints.save(self.state):
            self._tell.save()
            self._check_callbacks()

    def _save_unfinished(self) -> bool:
        """Write a checkpoint, and the weights if there are only those that training began with;
        whether the checkpoint could be written."""
        is_written = self._checkpoints.save(self.state)
        if self.state.best_loss is None:
            with self._trained.average.in_place():
                self._best.keep(self.state, math.inf, math.inf)
        self._best.write_again()
        if not self._best.are_kept:
            self._best.put_aside()
        if is_written:
            self._tell.save()
        return is_written

    # Callbacks that fail

    def _check_callbacks(self, is_over: bool = False) -> None:
        """Raise what a callback has raised in any process, once the run is saved."""
        (any_failed,) = distributed.highest(self._tell.callbacks.failure is not None)
        if any_failed:
            self._raise_failure(is_over)

    def _raise_failure(self, is_over: bool = False) -> None:
        # When training is over its last state is saved, and the model has the best weights.
        is_saved = self.out is not None
        if not is_over:
            is_saved = self.state.step > 0 and self._save_unfinished()
        kept_in = self.out if is_saved else None
        raise self._tell.callbacks.told_failure(kept_in, can_resume=not self.state.finished)
