"""Which pipelines there are. Written out, because Kedro's search would look for a folder named ``full``."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.grid import CODE_LENGTHS, SHOWN_CODE_LENGTH
from deephash_pipeline.pipelines import (
    baseline_hashing,
    cnn_pretraining,
    data_ingestion,
    descriptor_extraction,
    evaluation,
    feature_extraction,
    fine_tuning,
    hand_crafted,
    hash_layer_init,
    held_out_evaluation,
    paper_tables,
    reporting,
    tuning,
    tuning_results,
)


def register_pipelines() -> dict[str, Pipeline]:
    """Register each stage by its name, ``full`` with all of them, ``full_at_32_bits`` with one code length, and others.

    ``full_at_32_bits`` is a quick run, and the picture that ``make viz`` opens with: with five code lengths the codes
    that walk between the stages hide the stages.
    """
    stages = create_stages(CODE_LENGTHS)
    full = Pipeline(list(stages.values()))
    glance = Pipeline(list(create_stages([SHOWN_CODE_LENGTH]).values()))
    return {
        **stages,
        "full": full,
        f"full_at_{SHOWN_CODE_LENGTH}_bits": glance,
        **create_others(),
        "__default__": full,
    }


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
    return _named(stages)


def create_others() -> dict[str, Pipeline]:
    """Create what is run by its name and is no part of ``full``."""
    return _named(
        {
            "descriptor_extraction": descriptor_extraction.create_pipeline(),
            "hand_crafted": hand_crafted.create_pipeline(),
            "held_out_evaluation": held_out_evaluation.create_pipeline(),
            "paper_tables": paper_tables.create_pipeline(),
            "tuning": tuning.create_pipeline(),
            "tuning_results": tuning_results.create_pipeline(),
        }
    )


def _named(pipelines: dict[str, Pipeline]) -> dict[str, Pipeline]:
    """Make of each pipeline's name its namespace and its tag."""
    return {
        name: Pipeline(pipeline, namespace=name, prefix_datasets_with_namespace=False, tags=name)
        for name, pipeline in pipelines.items()
    }
