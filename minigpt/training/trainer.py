"""The training loop: take a step and report it; now and then evaluate and save."""

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
from ..data.batches import Dataset, make_batches
from ..runs.folder import INTERPOLATION, is_kept
from ..runs.listing import Run
from ..system.networks import evaluating
from . import distributed
from .callbacks import CallbackList, Figures
from .checkpoint import Learner, TrainingState
from .evaluation import Validation, best_candidate
from .folder import RunFolder
from .interruption import GracefulStop, Interrupted
from .loss import Diverged, LossFunction, advice, check_finite, check_weights
from .optimizer import OptimizersOf, chosen_optimizers
from .pace import Pace
from .reports import usual_callbacks
from .schedule import Schedule
from .setup import check_arguments, check_fit, config_for, context_length_of, undisturbed
from .step import GradientDescent, StartedStep


class Trainer:
    """Trains any network from token ids ``(b, T)`` to logits ``(b, T, vocab_size)``.

    At the end the module that was given holds the best weights by validation, or with
    `config.interpolate` the last ones that are nearly as good. It is moved to the device of the
    config; each of its parts stays in training or evaluation mode as it was.

    Args:
        model: any module with a parameter that is trained.
        dataset: the tokens to train on and to validate on.
        config: how to train. "auto" means float32, not compiled, unless the model is a `GPT`.
        out: the run's folder, made when training begins, or a :class:`RunFolder` that writes it;
            None: nothing is written.
        loss: a function of the model, inputs and targets ``(b, T)`` that returns what to minimise,
            a scalar. A batch may come in parts, whose losses are weighted by their numbers of
            targets. What is shown and validated is the cross-entropy in nats a token in any case.
        optimizers: a list, or a function of the model that returns one; those of the config if
            unset. The learning rate of each group is its highest, and the schedule moves all of
            them in proportion.
        schedule: a function of the share of the training that is done, 0 to 1. It returns the share
            of its highest learning rate that each group has in the next step. If unset, it rises
            and falls linearly, as the config says.
        callbacks: objects with any of the methods `on_start`, `on_step`, `on_evaluation`,
            `on_save` and `on_end`, see docs/components.md.
        context_length: how many tokens the model sees. If unset, ``model.config.context_length``,
            or 256 if the model has none.
        files: further text files that a new run begins with, by name.
        started: when the command began, in time.monotonic's seconds: from then on the minutes
            count. If unset, from the beginning of the training.
        reserve: seconds of the minutes to leave free after training.

    Attributes:
        folder: the :class:`RunFolder` that writes what is kept; callbacks write through it too.
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
        out: str | Path | RunFolder | None = None,
        loss: LossFunction | None = None,
        optimizers: Sequence[Optimizer] | OptimizersOf | None = None,
        schedule: Schedule | None = None,
        callbacks: Sequence[object] = (),
        context_length: int | None = None,
        files: Mapping[str, str] | None = None,
        started: float | None = None,
        reserve: float = 0.0,
    ):
        distributed.join()
        config = TrainConfig() if config is None else config
        check_arguments(model, dataset, config, loss=loss, schedule=schedule, callbacks=callbacks)

        self.model = model
        self.dataset = dataset
        self.folder = out if isinstance(out, RunFolder) else RunFolder(out)
        self.config, self.device = config_for(model, config)
        self.context_length = context_length_of(model, context_length)
        self.tokens_per_step = config.batch_size * self.context_length
        self.vocab_size = dataset.tokenizer.vocab_size
        self.byte_lengths = torch.tensor(dataset.tokenizer.byte_lengths())  # (vocab_size,)
        check_fit(model.to(self.device), dataset, self.context_length)

        self.batches = make_batches(dataset, self.config, self.context_length)
        self.optimizers = chosen_optimizers(optimizers, model, self.config)
        self.state = TrainingState()
        self.figures: Figures = {}
        self.started = 0.0  # in time.monotonic's seconds, as if there had been no interruption

        self._given_start = started
        self._reserve = reserve
        self._files = dict(files or {})
        self._optimizers_are_given = optimizers is not None
        self._given_callbacks = [*usual_callbacks(self.config, self.folder), *callbacks]
        self._learner = Learner.of(model, self.optimizers, self.config)
        self._descent = GradientDescent(
            self._learner,
            self.batches,
            self.config,
            loss=loss,
            schedule=schedule,
            byte_lengths=self.byte_lengths,
        )
        self._validation = Validation(
            model,
            self.batches,
            self.config,
            context_length=self.context_length,
            byte_lengths=self.byte_lengths,
        )

    def averaged(self) -> AbstractContextManager[None]:
        """Within, the model has the weights that an evaluation is of: averages over the latest
        steps."""
        return self._learner.average.in_place(self.model)

    def train(self) -> Run | None:
        """Train until the steps or the time are used up; the run, or None without a folder.

        Raises:
            UserError: if the folder is not free, training diverges or the best weights cannot be
                written.
            Interrupted: after a SIGINT, SIGTERM or SIGHUP; the run can be resumed.
        """
        if self.state.step > 0:
            raise UserError("this trainer has trained; make another one, or resume()")

        begun = self.folder.begun(
            self.model, self.dataset, self.config, self.context_length, files=self._files
        )
        with distributed.process_group(), begun:
            self._train()
        return None if self.folder.path is None else Run(self.folder.path)

    def resume(self) -> Run:
        """Go on from the last checkpoint in the folder, as if there had been no interruption.

        Raises:
            UserError: as :meth:`train`, or if there is no checkpoint that fits.
            Interrupted: as :meth:`train`.
        """
        if self.folder.path is None:
            raise UserError("a training is resumed from its folder: give out=")
        with distributed.process_group(), self.folder.held():
            self.state = self.folder.resume(self._learner, self.config, self.dataset)
            self._train()
        return Run(self.folder.path)

    # Before the first step and after the last

    def _train(self) -> None:
        """Train from where the state says, and leave the best weights in the model."""
        start = time.monotonic() if self._given_start is None else self._given_start
        self.started = start - self.state.seconds
        deadline = self.started + 60 * self.config.minutes - self._reserve
        steps_in_epoch = len(self.dataset.train) / self.tokens_per_step

        self._pace = Pace(self.config, deadline, steps_in_epoch, self.tokens_per_step)
        self._callbacks = CallbackList(self._given_callbacks, distributed.is_main())
        self._started: StartedStep | None = None  # whose figures are not known yet
        self.folder.tell("training")

        with undisturbed(self.model, self.config), GracefulStop() as stop:
            try:
                with self._descent.under_way():
                    self._prepare()
                    self._loop(stop)
                self.folder.load_best(self.model)
            except Diverged as problem:
                kept_in = self.folder.path if self.state.best_step > 0 else None
                rate = None if self._optimizers_are_given else self.config.learning_rate
                said = advice(problem, self.state.step, kept_in=kept_in, learning_rate=rate)
                raise said from None
            finally:
                self._callbacks.call("on_end", self)
            self._check_callbacks(is_over=True)

    def _prepare(self) -> None:
        """Find out how much time there is, and tell that the first step comes next."""
        state = self.state
        self._validation.plan(state, self.config, self._pace)
        at_end = self._validation.seconds_at_end(self._learner, state.eval_tokens)
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        self._pace.begin(state.seconds, at_end, parameters)

        # A run that is continued for longer than planned has its evaluations spread anew.
        begun = self._pace.done(state.step, state.seconds)
        due = math.floor(begun * self.config.num_evals)
        state.evaluations = min(state.evaluations, due)

        if state.step > 0:
            self.figures |= {"loss": state.train_loss, "bits_per_byte": state.train_bits_per_byte}
        self._report("on_start", begun)
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
                self.folder.check_end(self.model, self.state)
                return
            if self.folder.is_checkpoint_due(self.state):
                self.folder.write_best_again(self.model, self.state)
                self._save()

            self._step(done)

    def _progress(self, stop: GracefulStop) -> float:
        """The share of the training that is done, by the clock of rank 0.

        Raises Interrupted after a signal to any process or a `stop` in the journal, and what a
        callback has raised; the run is saved before. UserError if the folder is gone.
        """
        state = self.state
        journal = self.folder.journal

        # What one process has noticed, all of them have to act on.
        noticed = (
            self._pace.seconds() if distributed.is_main() else 0.0,
            stop.signal_number,
            journal is not None and journal.is_stop_asked,
            self._callbacks.wants_stop,
            self._callbacks.failure is not None,
            distributed.is_main() and self.folder.is_gone(),
        )
        in_any = distributed.highest(*noticed)
        state.seconds, signal_number, stop_asked, wants_stop, any_failed, is_gone = in_any

        if is_gone:
            raise self.folder.gone()
        if any_failed:
            self._raise_failure()

        done = 1.0 if wants_stop else self._pace.done(state.step, state.seconds)
        if (signal_number or stop_asked) and done < 1.0:
            is_saved = self._save_unfinished()  # before a word is said
            raise Interrupted(int(signal_number), saved=is_saved)
        return done

    def _step(self, done: float) -> None:
        """Take a step, before which a share of the training is done, and report it. While a GPU
        computes a step, the one before it is reported, unless a callback is to see the weights
        after each."""
        self.folder.tell("training")
        is_unchanged = not self._callbacks.may_have_changed_something
        started = self._descent.step(self.state, done, is_unchanged=is_unchanged)
        self._callbacks.may_have_changed_something = False
        self._finish_step()
        self._started = started
        if not (started.is_computed_later and self._callbacks.may_hear_late):
            self._finish_step()

    def _finish_step(self) -> None:
        """Report the step that was started last, if that has not been done."""
        started = self._started
        if started is None:
            return
        self._started = None
        result = self._descent.finish(self.state, started)
        self._pace.note(started.number)

        seconds = self._pace.seconds()
        done = self._pace.done(started.number, seconds)
        self.figures |= {
            "loss": result.loss,
            "bits_per_byte": result.bits_per_byte,
            "learning_rate": started.learning_rate,
            "gradient_norm": result.gradient_norm,
            "seconds_left": seconds * (1.0 - done) / max(done, 1e-9),
        }
        self._report("on_step", done, step=started.number)

    # Evaluations and checkpoints

    def _evaluate(self, done: float) -> None:
        """Evaluate, and keep the weights if they are the best or nearly so."""
        self._finish_step()
        self.folder.tell("evaluating")
        state = self.state
        state.evaluations = math.floor(done * self.config.num_evals)
        state.finished = done >= 1.0  # this is the last evaluation, unless its weights are lost

        candidate = best_candidate(self._learner, self._validation, state)
        result = candidate.result
        check_finite("validation loss", result.loss)
        keeps = is_kept(result.loss, state.best_loss, is_on_line=candidate.share is not None)
        if candidate.share is not None:
            self.figures[INTERPOLATION] = candidate.share

        with candidate.weights.in_place(self.model):
            check_weights(self.model)
            if keeps:
                self.folder.keep_best(self.model, state, result.loss, result.bits_per_byte)
            else:
                self.folder.write_best_again(self.model, state)

            self.figures |= {
                "val_loss": result.loss,
                "val_bits_per_byte": result.bits_per_byte,
                "val_right": result.right,
                "is_kept": keeps,
            }
            with evaluating(self.model):
                self._report("on_evaluation", done)
            self._pace.pause()

        self._check_callbacks()
        if state.finished and not self.folder.write_best_again(self.model, state):
            # Continued, the run makes this evaluation again.
            state.finished = False
            state.evaluations -= 1

    def _save(self) -> None:
        """Write a checkpoint. What has passed since the last step counts: an evaluation, mostly."""
        self._finish_step()
        self.folder.tell("saving")
        self.state.seconds = distributed.of_main(self._pace.seconds())
        if self.folder.save_checkpoint(self._learner, self.state, self.config):
            self._callbacks.call("on_save", self)
            self._check_callbacks()

    def _save_unfinished(self) -> bool:
        """Write a checkpoint, and the weights if none have been evaluated yet; whether the
        checkpoint could be written."""
        self._finish_step()
        is_written = self.folder.save_checkpoint(self._learner, self.state, self.config)
        if self.state.best_loss in (None, math.inf):  # infinite: it was interrupted before, too
            with self.averaged():
                self.folder.keep_best(self.model, self.state, math.inf, math.inf)

        self.folder.write_best_again(self.model, self.state)
        self.folder.put_best_aside(self.model, self.state)
        if is_written:
            self._callbacks.call("on_save", self)
        return is_written

    # Callbacks

    def _report(self, event: str, done: float, step: int | None = None) -> None:
        """Tell the callbacks of an event, at which a share of the training is done: of the latest
        step, or of another one."""
        self.figures |= {
            "step": self.state.step if step is None else step,
            "seconds": round(time.monotonic() - self.started, 3),
            "done": done if done in (0.0, 1.0) else round(done, 4),
            "train_loss": self.state.train_loss,
            "train_bits_per_byte": self.state.train_bits_per_byte,
            "tokens_per_second": round(self._pace.speed, 1),
        }
        minutes = self.config.minutes if self.config.steps is None else None
        self.folder.tell_figures(event, self.figures, self.state, minutes)
        self._callbacks.call(event, self)

    def _check_callbacks(self, is_over: bool = False) -> None:
        """Raise what a callback has raised in any process, once the run is saved."""
        (any_failed,) = distributed.highest(self._callbacks.failure is not None)
        if any_failed:
            self._raise_failure(is_over)

    def _raise_failure(self, is_over: bool = False) -> None:
        # When training is over its last state is saved, and the model has the best weights.
        is_saved = self.folder.path is not None
        if not is_over:
            is_saved = self.state.step > 0 and self._save_unfinished()
        kept_in = self.folder.path if is_saved else None
        raise self._callbacks.told_failure(kept_in, can_resume=not self.state.finished)
