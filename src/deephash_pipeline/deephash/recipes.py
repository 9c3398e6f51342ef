"""How `DeepHash` trains where its caller does not say: a recipe for each kind of network."""

from typing import Any, NamedTuple

from deephash_pipeline.deephash.experiment import StageParameters
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.deephash.initialise import HashLayerInitParameters
from deephash_pipeline.deephash.pretraining_parameters import PreTrainingParameters
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.losses import LOSS_PARAMETERS
from deephash_pipeline.networks import SMALL_RESNETS, HashLayerParameters
from deephash_pipeline.training import TrainingParameters

LEAST_EPOCHS, MOST_EPOCHS = 12, 60
"""Of stage 1 of a small residual network."""
SEEN = 60_000
"""Images that stage 1 of a small residual network looks at, each as often as there are epochs, if there are few."""
FEW_IMAGES = 2_000
"""Images up to which batches are of 32, so that there are enough steps."""
FINE_TUNING_SHARE = 3
"""Fine-tuning makes one epoch for so many of stage 1."""
GENTLER = 0.2
"""The rate of fine-tuning as a share of that of stage 1, whose weights it starts from."""
FEW_LARGE_CLASSES = 10
"""Classes up to which the loss on features takes all pairs alike: each image then has many that are similar."""


class Recipe(NamedTuple):
    """Parameters of the three stages.

    Attributes:
        pretraining: parameters of stage 1.
        hash_layer_init: parameters of stage 2.
        fine_tuning: parameters of the training of all layers.

    Example:
        >>> recipe_for("small_resnet", images=500, classes=10, frozen=False).pretraining.training.epochs
        60
    """

    pretraining: PreTrainingParameters
    hash_layer_init: HashLayerInitParameters
    fine_tuning: FineTuningParameters

    def with_batches_up_to(self, size: int) -> "Recipe":
        """Give the same with no larger batches than there are images."""
        return Recipe(*(_with_batches_up_to(size, stage) for stage in self))

    def following(self, pretraining: PreTrainingParameters) -> "Recipe":
        """Fine-tune as a stage 1 of these parameters wants it: with its augmentation, at a share of its rate."""
        training = self.fine_tuning.training.model_copy(
            update={"learning_rate": GENTLER * pretraining.training.learning_rate}
        )
        changes = {"training": training, "augmentation": pretraining.augmentation}
        return self._replace(pretraining=pretraining, fine_tuning=self.fine_tuning.model_copy(update=changes))


SLIGHT = AugmentationParameters(shift_pixels=2, rotation_degrees=10, scale_range=0.1)
"""For digits and other drawn signs; photographs want flips and larger shifts, see conf/cifar10."""

OF_PAPERS_NETWORKS = Recipe(
    PreTrainingParameters(
        training=TrainingParameters(
            epochs=30, batch_size=64, learning_rate=0.025, weight_decay=0.0005, schedule="one_cycle"
        ),
        augmentation=SLIGHT,
    ),
    HashLayerInitParameters(
        training=TrainingParameters(epochs=20, batch_size=64, learning_rate=0.05, schedule="one_cycle")
    ),
    FineTuningParameters(
        hash_layer=HashLayerParameters(centring=True, scale=3.0),
        loss=LOSS_PARAMETERS["exponentiated"].model_validate({"loss_scale": "unit", "balance_pairs": True}),
        training=TrainingParameters(epochs=10, batch_size=128, learning_rate=0.02, schedule="one_cycle"),
        augmentation=SLIGHT,
    ),
)


ON_FEATURES = Recipe(
    OF_PAPERS_NETWORKS.pretraining,
    HashLayerInitParameters(
        training=TrainingParameters(
            epochs=20, batch_size=64, learning_rate=0.5, weight_decay=0.003, schedule="one_cycle"
        )
    ),
    FineTuningParameters(
        hash_layer=HashLayerParameters(centring=True, scale=1.27),
        loss=LOSS_PARAMETERS["exponentiated"].model_validate(
            {"loss_scale": "unit", "balance_pairs": True, "temperature": 6.86}
        ),
        training=TrainingParameters(
            epochs=60, batch_size=128, learning_rate=0.0812, weight_decay=7.46e-06, schedule="one_cycle"
        ),
    ),
)
"""Of a trunk that is not trained, as conf/recipes/frozen_features.yml, where it is said how it was found."""

OF_FEW_CLASSES = ON_FEATURES._replace(
    fine_tuning=ON_FEATURES.fine_tuning.model_copy(
        update={
            "loss": LOSS_PARAMETERS["exponentiated"].model_validate({"loss_scale": "unit", "temperature": 15.0}),
            "training": ON_FEATURES.fine_tuning.training.model_copy(update={"weight_decay": 0.03, "averaging": 0.998}),
        }
    )
)
"""The same for few large classes, as conf/variants/cifar10_1_lite0.yml, where it is said how it was found.

Of the classes of Caltech-101 and SUN in 5 and 10 groups, images that took no part find one another better by 0.04 to
0.07; of SUN in 20 groups they lose 0.06 where they search the training set.
"""


def recipe_for(network: str, images: int, classes: int, frozen: bool) -> Recipe:
    """Give the recipe of a network.

    Args:
        network: name of the network.
        images: number of training images.
        classes: number of their classes.
        frozen: True if the trunk is not trained: the hash layer is learned on its features, which are computed once.

    Example:
        >>> recipe_for("lenet", images=500, classes=10, frozen=False).pretraining.augmentation.rotation_degrees
        10.0
    """
    recipe = OF_PAPERS_NETWORKS
    if frozen:
        recipe = OF_FEW_CLASSES if classes <= FEW_LARGE_CLASSES else ON_FEATURES
    elif network in SMALL_RESNETS:
        recipe = _of_small_resnets(images)
    return recipe.with_batches_up_to(images)


def _of_small_resnets(images: int) -> Recipe:
    epochs = min(max(LEAST_EPOCHS, round(SEEN / max(1, images))), MOST_EPOCHS)
    batch_size = 32 if images <= FEW_IMAGES else 128
    training = TrainingParameters(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=0.05,
        weight_decay=0.002,
        schedule="one_cycle",
        precision="auto",
    )
    pretraining = PreTrainingParameters(
        training=training,
        augmentation=AugmentationParameters(shift_pixels=3, horizontal_flip=True, colour_range=0.1),
        trials=True,
    )
    fine_tuning = OF_PAPERS_NETWORKS.fine_tuning.model_copy(
        update={"training": training.model_copy(update={"epochs": -(-epochs // FINE_TUNING_SHARE), "batch_size": 128})}
    )
    return OF_PAPERS_NETWORKS._replace(fine_tuning=fine_tuning).following(pretraining)


def _with_batches_up_to(size: int, stage: StageParameters) -> Any:
    training = stage.training.model_copy(update={"batch_size": min(stage.training.batch_size, size)})
    return stage.model_copy(update={"training": training})
