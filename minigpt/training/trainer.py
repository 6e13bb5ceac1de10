"""The training loop: batch, forward, backward, step, report; now and then evaluate and save."""

import contextlib
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import nn
from torch.optim import Optimizer

from .. import UserError
from ..config import EvaluationConfig, TrainConfig
from ..data.batches import Dataset, TokenSequence
from ..model import GPT
from ..runs.find import Run
from . import distributed, workers
from .average import WeightAverage
from .callbacks import CallbackList, Figures
from .checkpoint import Trained, TrainingState
from .compilation import compile_loss
from .divergence import Diverged, check_finite, check_loss, check_weights
from .evaluation import Evaluation, evaluate_tokens, evaluating
from .folder import check_same_text, locked_run, new_run, settings_of_run, update_settings
from .gradients import BatchResult, Part, set_gradients, training_batch
from .interruption import GracefulStop, Interrupted
from .limits import Limits, Speedometer
from .loggers import make_loggers
from .loss import Loss, LossFunction
from .messages import say
from .metrics import Metrics
from .optimizer import check_optimizers, make_optimizers, note_peaks, set_rates
from .optimizer_state import OptimizerKeeper
from .picture import Picture
from .precision import autocast, resolved
from .progress import Progress
from .saving import BestWeights, Checkpoints, seconds_since
from .schedule import learning_rate, smoothed
from .setup import check_dataset, check_logits, check_model, context_length_of, device_for

_FEWEST_WINDOWS = 4  # to evaluate on

OptimizersOf = Callable[[nn.Module], Sequence[Optimizer]]


class Trainer:
    """Trains any network from token ids ``(b, T)`` to logits ``(b, T, vocab_size)``.

    At the end the module that was given holds the best weights by validation. It is moved to the
    device of the config; that it, or a part of it, is in training mode or not stays as it was.

    Args:
        model: any module with a parameter that is trained.
        dataset: the tokens to train on and to validate on.
        config: how to train. "auto" stands for float32, not compiled, unless the model is a `GPT`.
        out: the run's folder, made when training begins; None: nothing is written.
        loss: what to minimise, of the model, inputs and targets ``(b, T)``: a scalar. A batch may
            come in parts, whose losses count by their rows. What is shown, and what is validated,
            is the cross-entropy in nats a token in any case.
        optimizers: a list, or a function of the model that returns one; those of the config if
            unset. The learning rate of each group is its highest, and the schedule moves all of
            them in proportion.
        callbacks: objects with any of the methods `on_start`, `on_step`, `on_evaluation`,
            `on_save` and `on_end`, see docs/components.md.
        context_length: how many tokens the model sees; 256 if neither this says it nor
            ``model.config.context_length``.
        files: further text files that a new run begins with, by name.
        started: when the command began, in time.monotonic's seconds: from then on the minutes
            count. If unset, from the beginning of the training.
        reserve: seconds of the minutes to leave free after training.

    Attributes:
        state: where the training stands.
        figures: what is known of it, as callbacks get it: the `step`, the `seconds` since the
            start, the share that is `done`, the `loss` and `bits_per_byte` of the step, its
            `learning_rate` and `gradient_norm`; smoothed over steps `train_loss` and
            `train_bits_per_byte`; `tokens_per_second`, `seconds_left`; of the last evaluation
            `val_loss`, `val_bits_per_byte`, and whether it `is_best`. Callbacks may add others.

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
    ):
        distributed.join()
        check_model(model)
        config = TrainConfig() if config is None else config
        distributed.check_batch(config.batch_size)

        self.model = model
        self.dataset = dataset
        self.out = None if out is None else Path(out)
        self.device = device_for(model, config.device)
        self.config = resolved(config, self.device, is_gpt=type(model) is GPT)
        self.context_length = context_length_of(model, context_length)
        self.vocab_size = dataset.tokenizer.vocab_size
        check_dataset(dataset, self.context_length)
        check_logits(model.to(self.device), self.context_length, self.vocab_size)

        self.precision: torch.dtype = getattr(torch, self.config.precision)
        self.byte_lengths = torch.tensor(dataset.tokenizer.byte_lengths())  # (vocab_size,)
        self._has_own_optimizers = optimizers is not None
        self.optimizers = self._optimizers(optimizers)
        held = {p for o in self.optimizers for group in o.param_groups for p in group["params"]}
        self._trained_parameters = [p for p in model.parameters() if p in held]
        self.state = TrainingState()
        self.figures: Figures = {}
        self.started = 0.0 if started is None else started

        own: list[object] = [Progress()]
        if self.out is not None:
            own += [Metrics(), Picture()]
        self._callbacks = [*own, *make_loggers(config.log, self.out), *callbacks]
        self._files = dict(files or {})
        self._is_started = started is not None
        self._reserve = reserve
        self._plain_loss = Loss(model, loss)
        self._average = WeightAverage(model)
        trained = Trained(model, self._average, OptimizerKeeper(self.optimizers, model))
        self._best = BestWeights(model, self.out)
        self._checkpoints = Checkpoints(trained, self.out, config.checkpoint_seconds)

        # In an evaluation: no more than in a step, which takes more memory for each.
        in_a_step = config.micro_batch_size or config.batch_size // distributed.world_size()
        self._windows_at_once = min(in_a_step, EvaluationConfig.batch_size)

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
        with (
            distributed.process_group(),
            new_run(self.out, settings, self.model, self.dataset, self._files),
        ):
            self._train()
        return Run(self.out)

    def resume(self) -> Run:
        """Go on from the last checkpoint in the folder, as if there had been no interruption.

        Raises:
            UserError: as :meth:`train`, or if there is no checkpoint that fits.
            Interrupted: as :meth:`train`.
        """
        if self.out is None:
            raise UserError("a training is resumed from its folder: say out=")
        with distributed.process_group(), locked_run(self.out):
            distributed.on_main(check_same_text, self.out, self.dataset)
            self.state = self._checkpoints.load()
            self.state.finished = False
            self._best.note(self.state)
            distributed.on_main(update_settings, self.out, self.config)
            self._train()
        return Run(self.out)

    # Before the first step and after the last

    def _train(self) -> None:
        """Train from where the state says, and leave the best weights in the model."""
        start = self.started if self._is_started else time.monotonic()
        self.started = start - self.state.seconds
        deadline = self.started + 60 * self.config.minutes - self._reserve
        tokens_per_step = self.config.batch_size * self.context_length
        self._limits = Limits(self.config, deadline, len(self.dataset.train) / tokens_per_step)
        self._speedometer = Speedometer(tokens_per_step)
        self._told = CallbackList(self._callbacks, distributed.is_main())

        with contextlib.ExitStack() as stack:
            stack.enter_context(_as_before(self.model))
            stack.enter_context(workers.team(self._num_workers()))
            stack.enter_context(self._plain_loss.watching())
            stop = stack.enter_context(GracefulStop())
            try:
                self._prepare()
                self._loop(stop)
                self._best.load()
            except Diverged as problem:
                raise self._advice(problem) from None
            finally:
                set_rates(self.optimizers, share=1.0)
                self._told.call("on_end", self, self.figures)
            if self._told.failure is not None:
                raise self._told.failure

    def _prepare(self) -> None:
        """Compile, and find out how much time there is."""
        if not self.model.training:
            self.model.train()
        self._loss = self._synchronised_loss()
        seconds = self._time_an_evaluation()
        self._limits.begin(self.state.seconds, evaluation_seconds=seconds)

        # A run that is continued for longer than planned has its evaluations spread anew.
        begun = self._limits.done(self.state.step, self.state.seconds)
        due = math.floor(begun * self.config.num_evals)
        self.state.evaluations = min(self.state.evaluations, due)

        seconds = round(time.monotonic() - self.started, 3)
        self.figures |= {"step": self.state.step, "seconds": seconds, "done": round(begun, 4)}
        self._told.call("on_start", self, self.figures)
        self._check_callbacks()

    def _synchronised_loss(self) -> nn.Module:
        """The loss, alike in all processes, compiled if the config says so."""
        loss = distributed.synchronised(self._plain_loss)
        if self.config.compile != "on":
            return loss

        def try_out() -> None:
            for done in (0.0, 1.0):  # windows are shorter early in the training
                inputs, targets = self._batch(step=0, done=done)[0]
                with autocast(self.device, self.precision):
                    value, _ = loss(inputs.to(self.device), targets.to(self.device))
                value.backward()
                self.model.zero_grad()

        say("compiling the model, which takes up to a minute ...")
        compile_loss(self._plain_loss, try_out)
        return loss

    def _time_an_evaluation(self) -> float:
        """Seconds that an evaluation takes. By time, choose how many tokens to evaluate on, so
        that all evaluations together take a tenth of it.

        As many windows are computed at once as there will be later, so that memory that does not
        suffice is missed now.
        """
        T, most = self.context_length, self.config.eval_tokens
        windows = max(self._windows_at_once, workers.count()) * distributed.world_size()
        count = min(windows * T, max(most, T))
        beginning = self.dataset.validation[: count + 1]
        self._evaluation(count, beginning)  # the first one is slow
        start = time.monotonic()
        result = self._evaluation(count, beginning)
        per_token = distributed.on_main(seconds_since, start) / result.tokens

        if self.state.step == 0:
            self.state.eval_tokens = most
            if self.config.steps is None:
                left = max(self._limits.seconds_to_deadline(), 0.0)
                seconds = 0.1 * left / self.config.num_evals
                affordable = max(_FEWEST_WINDOWS * T, int(seconds / per_token))
                self.state.eval_tokens = min(most, affordable)
        return per_token * min(self.state.eval_tokens, len(self.dataset.validation))

    # The loop

    def _loop(self, stop: GracefulStop) -> None:
        while True:
            done = self._progress(stop)
            is_due = done * self.config.num_evals >= self.state.evaluations + 1
            if is_due:
                self._evaluate(done)
                self._save()
            if done >= 1.0:
                self._best.check()
                return
            if self._checkpoints.is_due(self.state):
                self._save()
            self._step(done)

    def _progress(self, stop: GracefulStop) -> float:
        """The share of the training that is done, by the clock of rank 0.

        Raises Interrupted after a signal to any process, and what a callback has raised; the run
        is saved before.
        """
        state, told = self.state, self._told
        seconds = self._limits.seconds() if distributed.is_main() else 0.0
        has_failed = told.failure is not None
        state.seconds, number, wants_stop, has_failed_anywhere = distributed.highest(
            seconds, stop.signal_number, told.wants_stop, has_failed
        )

        if has_failed_anywhere:
            self._raise_failure()
        done = 1.0 if wants_stop else self._limits.done(state.step, state.seconds)
        if number and done < 1.0:
            is_saved = self._save_unfinished()  # before a word is said
            raise Interrupted(int(number), saved=is_saved)
        return done

    def _step(self, done: float) -> None:
        """One step of gradient descent."""
        self._prepare_step(done)
        parts = self._batch(self.state.step, done)
        result = set_gradients(
            self._loss,
            self._trained_parameters,
            parts,
            self.byte_lengths,
            grad_clip=self.config.grad_clip,
            precision=self.precision,
        )

        check_finite("loss", result.minimised)
        check_finite("loss", result.loss)
        check_finite("gradient", result.gradient_norm)
        for optimizer in self.optimizers:
            optimizer.step()
        self.model.zero_grad()
        self._average.update(self.state.step)

        self._count(result)
        check_loss(self.state.train_loss, self.state.first_loss, self.vocab_size)
        self._tell_step(result)

    def _prepare_step(self, done: float) -> None:
        """Set the learning rates, and the random numbers that dropout draws."""
        config = self.config
        set_rates(
            self.optimizers, learning_rate(done, 1.0, config.warmup_ratio, config.min_lr_ratio)
        )
        # A dropout seed for each step and rank: resuming needs no random state.
        place = f"{config.seed} {self.state.step} {distributed.rank()}"
        digest = hashlib.sha256(place.encode()).digest()
        torch.manual_seed(int.from_bytes(digest[:8], "little"))

    def _batch(self, step: int, done: float) -> list[Part]:
        """This process's part of the batch."""
        return training_batch(
            self.dataset,
            self.config,
            self.context_length,
            step=step,
            done=done,
            rows=distributed.share(self.config.batch_size),
        )

    def _count(self, result: BatchResult) -> None:
        """A step has been taken."""
        state, bits = self.state, result.bits_per_byte
        if state.step == 0:
            state.first_loss = result.loss
        state.train_loss = smoothed(state.train_loss, result.loss, state.step)
        state.train_bits_per_byte = smoothed(state.train_bits_per_byte, bits, state.step)
        state.step += 1

    def _tell_step(self, result: BatchResult) -> None:
        """Call back after a step."""
        state = self.state
        self._speedometer.note(state.step)
        seconds = self._limits.seconds()
        done = self._limits.done(state.step, seconds)
        self.figures |= {
            "step": state.step,
            "seconds": round(time.monotonic() - self.started, 3),
            "done": round(done, 4),
            "loss": result.loss,
            "bits_per_byte": result.bits_per_byte,
            "learning_rate": self.optimizers[0].param_groups[0]["lr"],
            "gradient_norm": result.gradient_norm,
            "train_loss": state.train_loss,
            "train_bits_per_byte": state.train_bits_per_byte,
            "tokens_per_second": round(self._speedometer.speed, 1),
            "seconds_left": seconds * (1.0 - done) / max(done, 1e-9),
        }
        self._told.call("on_step", self, self.figures)

    # Evaluations

    def _evaluate(self, done: float) -> None:
        """Evaluate the average of the weights, and keep it if it is the best. At the end, when they
        hardly move, a model that has not yet learned what it could may be better without: then it
        is the last weights."""
        state = self.state
        state.evaluations = math.floor(done * self.config.num_evals)
        state.finished = done >= 1.0
        with self._average.in_place():
            result = self._evaluation(state.eval_tokens)
        weights: contextlib.AbstractContextManager = self._average.in_place()
        if state.finished:
            last = self._evaluation(state.eval_tokens)
            if last.loss < result.loss:
                result = last
                weights = contextlib.nullcontext()

        check_finite("validation loss", result.loss)
        is_best = state.best_loss is None or result.loss < state.best_loss
        with weights:
            check_weights(self.model)
            if is_best:
                self._best.keep(state, result.loss, result.bits_per_byte)
            self._tell_evaluation(result, is_best, done)
        self._check_callbacks()
        if state.finished and not self._best.are_kept:
            # Continued, the run makes this evaluation again.
            state.finished = False
            state.evaluations -= 1

    def _evaluation(self, max_tokens: int, tokens: TokenSequence | None = None) -> Evaluation:
        """Of the model as it is now, on the validation text or on other tokens."""
        return evaluate_tokens(
            self.model,
            self.dataset.validation if tokens is None else tokens,
            self.byte_lengths,
            context_length=self.context_length,
            max_tokens=max_tokens,
            at_once=self._windows_at_once,
            precision=self.precision,
        )

    def _tell_evaluation(self, result: Evaluation, is_best: bool, done: float) -> None:
        """Call back after an evaluation, with the weights that were evaluated in the model."""
        state = self.state
        self.figures |= {
            "step": state.step,
            "seconds": round(time.monotonic() - self.started, 3),
            "done": 1.0 if state.finished else round(done, 4),
            "train_loss": state.train_loss,
            "train_bits_per_byte": state.train_bits_per_byte,
            "tokens_per_second": round(self._speedometer.speed, 1),
            "val_loss": result.loss,
            "val_bits_per_byte": result.bits_per_byte,
            "is_best": is_best,
        }
        with evaluating(self.model):
            self._told.call("on_evaluation", self, self.figures)
        self._speedometer.pause()

    # Saving, and what ends a training early

    def _save(self) -> bool:
        """Write a checkpoint; whether that succeeded."""
        is_written = self._checkpoints.save(self.state)
        if is_written:
            self._told.call("on_save", self, self.figures)
            self._check_callbacks()
        return is_written

    def _save_unfinished(self) -> bool:
        """Write a checkpoint, and the weights if there are only those that training began with."""
        is_written = self._checkpoints.save(self.state)
        if self.state.best_loss is None:
            with self._average.in_place():
                self._best.keep(self.state, math.inf, math.inf)
        return is_written

    def _check_callbacks(self) -> None:
        """Raise what a callback has raised in any process, once the run is saved."""
        (has_failed,) = distributed.highest(self._told.failure is not None)
        if has_failed:
            self._raise_failure()

    def _raise_failure(self) -> None:
        failure, name = self._told.failure, self._told.failed
        is_saved = self.state.step > 0 and self._save_unfinished()
        if failure is None:
            raise UserError("a callback failed in another process")
        kept = f"; the run is kept in {self.out} and can be resumed" if is_saved else ""
        say(f"callback {name} failed: {type(failure).__name__}: {failure}{kept}")
        raise failure

    def _advice(self, problem: Diverged) -> UserError:
        """What to say of a training that has diverged."""
        step = self.state.step
        if step == 0:
            return UserError(f"cannot train from these weights: {problem}")
        kept = ""
        if self.out is not None and self.state.best_step > 0:
            kept = f"the best weights so far are in {self.out}; "
        rate = self.config.learning_rate / 4
        advice = f"train again with --learning-rate {rate:.1g} or less"
        if self._has_own_optimizers:
            advice = "train again with lower learning rates"
        return UserError(f"{problem} at step {step:,}; {kept}{advice}")

    # What it is made of

    def _optimizers(
        self, given: Sequence[Optimizer] | OptimizersOf | None
    ) -> list[torch.optim.Optimizer]:
        """The optimizers of the config or those given."""
        if given is None:
            optimizers = make_optimizers(self.model, self.config, self.precision)
        else:
            made = given(self.model) if callable(given) else given
            optimizers = check_optimizers(made, self.model)
        note_peaks(optimizers)
        return optimizers

    def _num_workers(self) -> int:
        """Threads that share each batch."""
        dropout = workers.common_dropout(self.model)
        can_share = workers.can_share(self.device, self.config.compile, dropout)
        return (can_share and self.config.num_workers) or 1


@contextlib.contextmanager
def _as_before(model: nn.Module) -> Iterator[None]:
    """Afterwards random numbers go on as if there had been no training, and each part of the model
    is in the mode, training or not, that it was in."""
    modes = {part: part.training for part in model.modules()}
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        try:
            yield
        finally:
            for part, was_training in modes.items():
                part.training = was_training
