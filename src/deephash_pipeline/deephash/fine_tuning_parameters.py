"""Parameters of fine-tuning: the loss, the hash layer, the training, and what of them fits together."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from deephash_pipeline.deephash.experiment import StageParameters
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.losses import LOSS_PARAMETERS, LOSSES, LossParameters, SimilarityParameters
from deephash_pipeline.networks import HashLayerParameters
from deephash_pipeline.training.gradients import LearnsCodes


class FineTuningParameters(StageParameters):
    """How to train trunk and hash layer together. Every departure from the paper stands in one of these blocks.

    Attributes:
        initial_hash_layer: layer that goes onto the trunk of pre-training: the hash layer of stage 2, or one of
            ``random`` weights, for losses that want other bits than stage 2 has found. A divided hash layer is always
            random.
        frozen_trunk: True to train the hash layer alone, on what pre-training sees in the images; nothing that tells
            unseen classes apart is then unlearned. So it is where the experiment's trunk is frozen.
        similarity: bits that the loss is not given, because they keep what pre-training has found similar.

    Example:
        >>> from deephash_pipeline.training import TrainingParameters
        >>> training = TrainingParameters(epochs=3, batch_size=8, learning_rate=0.1)
        >>> FineTuningParameters(training=training, loss={"name": "csq"}).loss.name
        'csq'
    """

    hash_layer: HashLayerParameters = HashLayerParameters()
    initial_hash_layer: Literal["pre_trained", "random"] = "pre_trained"
    loss: LossParameters = LOSS_PARAMETERS["exponentiated"]()
    frozen_trunk: bool = False
    similarity: SimilarityParameters = SimilarityParameters()
    augmentation: AugmentationParameters = AugmentationParameters()

    @field_validator("loss", mode="before")
    @classmethod
    def _without_a_name_the_loss_is_the_papers(cls, loss: Any) -> Any:
        return {"name": "exponentiated", **loss} if isinstance(loss, Mapping) else loss

    @model_validator(mode="after")
    def _the_blocks_fit_each_other(self) -> Self:
        if self.hash_layer.features_per_bit and self.initial_hash_layer != "random":
            raise ValueError("a hash layer with `features_per_bit` needs `initial_hash_layer: random`")
        loss = LOSSES[self.loss.name]
        more_than_u = loss.classification_head or loss.reads_features or issubclass(loss, LearnsCodes)
        if self.similarity.share and more_than_u:
            raise ValueError(f"`similarity` divides u, and `{self.loss.name}` is no loss of u alone: leave it out")
        if loss.views > 1 and not self.augmentation.moves:
            raise ValueError(
                f"{self.loss.name} compares views of an image, which are alike without augmentation: set "
                "`shift_pixels`, `rotation_degrees`, `scale_range` or `horizontal_flip` of `augmentation`"
            )
        return self
