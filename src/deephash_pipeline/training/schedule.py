"""When the learning rate changes, and when training has converged."""

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR, ReduceLROnPlateau

from deephash_pipeline.training.parameters import TrainingParameters


class Schedule:
    """Follows every step and every epoch; says when to stop.

    ``plateau`` is the paper's: a drop by a constant factor each time the training loss stops falling, until
    convergence. ``one_cycle`` goes up to the peak and down to zero over all steps.

    Args:
        optimizer: optimizer whose rate changes.
        parameters: parameters that name the schedule.
        steps: number of steps of the run, at most.

    Attributes:
        scheduler: PyTorch's, with all of its state.

    Example:
        >>> from torch import zeros
        >>> from torch.optim import SGD
        >>> settings = {"plateau_patience": 1, "plateau_drops": 1}
        >>> parameters = TrainingParameters(epochs=10, batch_size=2, learning_rate=0.1, **settings)
        >>> optimizer = SGD([zeros(1, requires_grad=True)], lr=0.1)
        >>> schedule = Schedule(optimizer, parameters, steps=10)
        >>> for loss in (1.0, 1.0, 1.0):
        ...     schedule.after_epoch(loss)
        >>> schedule.converged
        True
    """

    scheduler: LRScheduler

    def __init__(self, optimizer: Optimizer, parameters: TrainingParameters, steps: int) -> None:
        self.optimizer, self.smallest = optimizer, 0.0
        if parameters.schedule == "plateau":
            self.scheduler = ReduceLROnPlateau(
                optimizer,
                factor=parameters.plateau_factor,
                patience=parameters.plateau_patience - 1,
                threshold=1e-4,
                threshold_mode="abs",
            )
            self.smallest = parameters.learning_rate * parameters.plateau_factor ** (parameters.plateau_drops + 0.5)
        else:
            self.scheduler = OneCycleLR(
                optimizer,
                max_lr=[group["lr"] for group in optimizer.param_groups],
                total_steps=steps + 1,
                # PyTorch divides by zero where the way up takes no step at all, in a run of a few steps.
                pct_start=max(parameters.warm_up_share, 1.5 / (steps + 1)),
                cycle_momentum=False,
            )

    def after_step(self) -> None:
        """Move along the cycle; without one nothing changes within an epoch."""
        if isinstance(self.scheduler, OneCycleLR):
            self.scheduler.step()

    def after_epoch(self, training_loss: float) -> None:
        """Compare the mean loss of an epoch with the best so far; in a cycle it has no say."""
        if isinstance(self.scheduler, ReduceLROnPlateau):
            # PyTorch leaves out drops of less than this, and training would never converge; a checkpoint restores it.
            self.scheduler.eps = 0.0
            self.scheduler.step(training_loss)

    @property
    def converged(self) -> bool:
        """Whether the last permitted drop has brought no further fall."""
        return bool(self.optimizer.param_groups[0]["lr"] < self.smallest)
