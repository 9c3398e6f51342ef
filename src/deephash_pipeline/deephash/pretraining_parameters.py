"""Parameters of stage 1 of pre-training."""

from pydantic import Field

from deephash_pipeline.deephash.experiment import StageParameters
from deephash_pipeline.images.augmentation import AugmentationParameters


class PreTrainingParameters(StageParameters):
    """How to train the trunk under a softmax layer.

    Attributes:
        label_smoothing: share of each label that is spread over all classes; for labels that are often wrong.
        augmentation: changes of training images.
        trials: True to choose by short trainings whether images are mirrored and turned, and the learning rate, around
            the one that is given; see `choose_pretraining`.

    Example:
        >>> from deephash_pipeline.training import TrainingParameters
        >>> training = TrainingParameters(epochs=3, batch_size=8, learning_rate=0.1)
        >>> PreTrainingParameters(training=training).augmentation.moves
        False
    """

    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    augmentation: AugmentationParameters = AugmentationParameters()
    trials: bool = False
