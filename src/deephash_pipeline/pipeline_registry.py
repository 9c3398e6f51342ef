"""Which pipelines there are. Written out, because Kedro's search would look for a folder named ``full``."""

from kedro.pipeline import Pipeline

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
    """Register each stage under its name, and ``full``, in which every stage is a box of its own.

    In a stage a cell is the namespace ``<method>.b<bits>``, so that ``kedro run --pipelines=evaluation
    --namespaces=itq`` selects cells; in ``full`` it is ``<stage>.<method>.b<bits>``, so that Kedro-Viz folds by stage.
    """
    modules = (
        data_ingestion,
        cnn_pretraining,
        feature_extraction,
        baseline_hashing,
        hash_layer_init,
        fine_tuning,
        evaluation,
        reporting,
    )
    names = [module.__name__.rpartition(".")[2] for module in modules]
    stages = {name: Pipeline(module.create_pipeline(), tags=name) for name, module in zip(names, modules, strict=True)}
    full = Pipeline(
        [Pipeline(stage, namespace=name, prefix_datasets_with_namespace=False) for name, stage in stages.items()]
    )
    return {**stages, "full": full, "__default__": full}
