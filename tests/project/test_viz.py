"""What Kedro-Viz is made light by says the same as Kedro-Viz."""

from kedro_viz.data_access.repositories import ModularPipelinesRepository

from deephash_pipeline.pipeline_registry import register_pipelines
from deephash_pipeline.project.viz import Namespaces


def test_namespaces_are_those_of_kedro_viz():
    pipeline = register_pipelines()["hand_crafted"]
    theirs, ours = ModularPipelinesRepository(), Namespaces()
    theirs.populate_tree(pipeline)
    ours.populate_tree(pipeline)
    assert len(theirs.tree) > 5
    assert ours.tree == theirs.tree
    assert ours.node_mod_pipeline_map == theirs.node_mod_pipeline_map
