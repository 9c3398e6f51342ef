"""Bundles that several stages read."""

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash.experiment import ClassifierRun, Run
from deephash_pipeline.deephash.fine_tune import PreTrainedWeights
from deephash_pipeline.deephash.training_set import LabelledFeatures, LabelledImages, TrainingSet
from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE, PRE_TRAINING
from deephash_pipeline.pipelines.shared.bundles import Bundle, of_cell

OF_TRAINING_SET = ("training_images", "training_labels", "pixel_statistics", "class_names")
TRAINING_SET_FILES = Bundle(TrainingSet, OF_TRAINING_SET)
VALIDATION_SET = Bundle(LabelledImages, ("validation_images", "validation_labels"))
QUERIES = Bundle(LabelledImages, ("query_images", "query_labels"))
TRAINING_FEATURES = Bundle(LabelledFeatures, ("training_z", "training_labels", "class_names"))
CELL_RUN = Bundle(Run.of_replicate, ("params:experiment", "params:cell", "checkpoints"))
TRIAL_RUN = Bundle(Run.of_replicate, ("params:experiment", "params:cell"))
PRE_TRAINED = Bundle(PreTrainedWeights, ("trunk_weights", "initial_hash_layer", "softmax_weights", "training_z"))
CLASSIFIER_RUN = Bundle(
    ClassifierRun.of_replicate,
    ("params:experiment", f"params:{CLASSIFIER_BASELINE.parameter}", "pre_training_checkpoints"),
)
"""The cell says which of several seeds it is: that of the classifier's own code, which trains nothing else."""


def of_trained_cell(template: Pipeline, cell: Cell) -> Pipeline:
    """Instantiate a template that trains a cell by its method's parameters, maybe from the pre-trained layer."""
    start = f"{cell.of_method(PRE_TRAINING).namespace}.hash_layer"
    parameters = {"params:fine_tuning": f"params:fine_tuning.{cell.method}"}
    return of_cell(template, cell, {"initial_hash_layer": start}, parameters)
