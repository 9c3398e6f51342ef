"""When the learning rate changes, and when training has converged."""

from typing import Protocol

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR, ReduceLROnPlateau

from deephash_pipeline.training.parameters import TrainingParameters


class Schedule(Protocol):
    """Follows every step and every epoch; says when to stop.

    Attributes:
        scheduler: PyTorch's, with all of its state.
    """

    scheduler: LRScheduler

    def after_step(self) -> None:
        """Called after each optimiser step."""

    def after_epoch(self, training_loss: float) -> None:
        """Called after each epoch with its mean training loss."""

    @property
    def converged(self) -> bool:
        """Whether further epochs are pointless."""


class PlateauSchedule:
    """The paper's: a drop by a constant factor each time the training loss stops falling, until convergence."""

    def __init__(self, optimizer: Optimizer, parameters: TrainingParameters) -> None:
        self.plateau = ReduceLROnPlateau(
            optimizer,
            factor=parameters.plateau_factor,
            patience=parameters.plateau_patience - 1,
            threshold=1e-4,
            threshold_mode="abs",
        )
        self.scheduler: LRScheduler = self.plateau
        self.smallest = parameters.learning_rate * parameters.plateau_factor ** (parameters.plateau_drops + 0.5)
        self.optimizer = optimizer

    def after_step(self) -> None:
        """Nothing changes within an epoch."""

    def after_epoch(self, training_loss: float) -> None:
        """Compare with the best epoch so far."""
        # PyTorch leaves out drops of less than this, and training would never converge; a checkpoint restores it.
        self.plateau.eps = 0.0
        self.plateau.step(training_loss)

    @property
    def converged(self) -> bool:
        """Whether the last permitted drop has brought no further fall."""
        return bool(self.optimizer.param_groups[0]["lr"] < self.smallest)


class OneCycleSchedule:
    """Up to the peak and down to zero over a fixed number of epochs."""

    converged = False

    def __init__(self, optimizer: Optimizer, parameters: TrainingParameters, steps: int) -> None:
        self.scheduler: LRScheduler = OneCycleLR(
            optimizer,
            max_lr=[group["lr"] for group in optimizer.param_groups],
            total_steps=steps + 1,
            # PyTorch divides by zero where the way up takes no step at all, in a run of a few steps.
            pct_start=max(parameters.warm_up_share, 1.5 / (steps + 1)),
            cycle_momentum=False,
        )

    def after_step(self) -> None:
        """Move along the cycle."""
        self.scheduler.step()

    def after_epoch(self, training_loss: float) -> None:
        """The loss has no say."""


def build_schedule(optimizer: Optimizer, parameters: TrainingParameters, steps: int) -> Schedule:
    """Make the schedule that the parameters name, for a run of at most `steps` steps.

    Example:
        >>> from torch import zeros
        >>> from torch.optim import SGD
        >>> settings = {"plateau_patience": 1, "plateau_drops": 1}
        >>> parameters = TrainingParameters(epochs=10, batch_size=2, learning_rate=0.1, **settings)
        >>> optimizer = SGD([zeros(1, requires_grad=True)], lr=0.1)
        >>> schedule = build_schedule(optimizer, parameters, steps=10)
        >>> for loss in (1.0, 1.0, 1.0):
        ...     schedule.after_epoch(loss)
        >>> schedule.converged
        True
    """
    if parameters.schedule == "plateau":
        return PlateauSchedule(optimizer, parameters)
    return OneCycleSchedule(optimizer, parameters, steps)
