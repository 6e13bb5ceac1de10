"""Callbacks that hand the figures of a training to TensorBoard or Weights & Biases."""

from dataclasses import asdict

from ..config import GPTConfig
from .callbacks import Figures, Training

_OF_STEPS = ("loss", "train_loss", "train_bits_per_byte", "learning_rate", "gradient_norm")
_OF_EVALUATIONS = ("val_loss", "val_bits_per_byte", "tokens_per_second")


class _Logger:
    """Keeps figures until the next evaluation or checkpoint: before the first of these a run has
    learned nothing, and may be removed."""

    only_reports = True
    hears_late = True

    def __init__(self) -> None:
        self._waiting: list[tuple[int, dict[str, float]]] = []
        self._is_open = False

    def on_step(self, trainer: Training, figures: Figures) -> None:
        self._waiting.append((figures["step"], {name: figures[name] for name in _OF_STEPS}))

    def on_evaluation(self, trainer: Training, figures: Figures) -> None:
        self._waiting.append((figures["step"], {name: figures[name] for name in _OF_EVALUATIONS}))
        self.on_save(trainer, figures)

    def on_save(self, trainer: Training, figures: Figures) -> None:
        if not self._is_open:
            self._open(trainer)
            self._is_open = True
        for step, values in self._waiting:
            self._log(step, values)
        self._waiting.clear()

    def on_end(self, trainer: Training, figures: Figures) -> None:
        if self._is_open:
            self.on_save(trainer, figures)
            self._close()
            self._is_open = False

    def _open(self, trainer: Training) -> None:
        raise NotImplementedError

    def _log(self, step: int, values: dict[str, float]) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError


class TensorBoard(_Logger):
    """Writes into the run's folder: see it with ``tensorboard --logdir runs``."""

    def _open(self, trainer: Training) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # A resumed training repeats the steps after its checkpoint: what was written of them goes.
        first = self._waiting[0][0] if self._waiting else trainer.state.step + 1
        self._writer = SummaryWriter(str(trainer.folder.path), purge_step=first)

    def _log(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def _close(self) -> None:
        self._writer.close()


class WeightsAndBiases(_Logger):
    """Sends the figures to wandb.ai, or with WANDB_MODE=offline writes them into the run's folder
    or, where there is none, into the current one."""

    def _open(self, trainer: Training) -> None:
        import wandb

        settings = asdict(trainer.config)
        shape = getattr(trainer.model, "config", None)
        if isinstance(shape, GPTConfig):
            settings |= asdict(shape)
        folder = trainer.folder.path
        name = None if folder is None else folder.name
        self._run = wandb.init(project="minigpt", name=name, dir=folder, config=settings)

    def _log(self, step: int, values: dict[str, float]) -> None:
        self._run.log(values, step=step)

    def _close(self) -> None:
        self._run.finish()


LOGGERS = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}  # by TrainConfig.log
