"""Which pipelines there are. Written out, because Kedro's search would look for a folder named ``full``."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.grid import CODE_LENGTHS, SHOWN_CODE_LENGTH
from deephash_pipeline.pipelines import (
    baseline_hashing,
    cnn_pretraining,
    data_ingestion,
    evaluation,
    feature_extraction,
    fine_tuning,
    hash_layer_init,
    reporting,
)


def register_pipelines() -> dict[str, Pipeline]:
    """Register each stage by its name, ``full`` with all of them, and ``full_at_32_bits`` with one code length.

    The last is a quick run, and the picture that ``make viz`` opens with: with five code lengths the codes that walk
    between the stages hide the stages.
    """
    stages = create_stages(CODE_LENGTHS)
    full = Pipeline(list(stages.values()))
    glance = Pipeline(list(create_stages([SHOWN_CODE_LENGTH]).values()))
    return {**stages, "full": full, f"full_at_{SHOWN_CODE_LENGTH}_bits": glance, "__default__": full}


def create_stages(code_lengths: Sequence[int]) -> dict[str, Pipeline]:
    """Create the eight stages, each a namespace and a tag; inside it a cell is a namespace ``<method>.b<bits>``."""
    stages = {
        "data_ingestion": data_ingestion.create_pipeline(),
        "cnn_pretraining": cnn_pretraining.create_pipeline(),
        "feature_extraction": feature_extraction.create_pipeline(),
        "baseline_hashing": baseline_hashing.create_pipeline(code_lengths),
        "hash_layer_init": hash_layer_init.create_pipeline(code_lengths),
        "fine_tuning": fine_tuning.create_pipeline(code_lengths),
        "evaluation": evaluation.create_pipeline(code_lengths),
        "reporting": reporting.create_pipeline(),
    }
    return {
        name: Pipeline(stage, namespace=name, prefix_datasets_with_namespace=False, tags=name)
        for name, stage in stages.items()
    }
