"""What a run prints at its end."""

from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline

from deephash_pipeline.project.hooks import ResultTable


def test_a_run_of_cells_ends_with_their_map_and_the_command_that_puts_all_beside_each_other(capsys):
    catalog, names = DataCatalog(), ("itq.b12.metrics", "itq.b16.metrics", "dpsh.b12.metrics")
    for name, score in zip(names[:2], (0.25, 0.5), strict=True):
        method, bits, _ = name.split(".")
        metrics = {"method": method, "code_length": int(bits[1:]), "mean_average_precision": score}
        catalog[name] = MemoryDataset(metrics)
    pipeline = Pipeline([Node(lambda seed: seed, "params:seed", name, name=name) for name in names])
    ResultTable().after_pipeline_run(pipeline=pipeline, catalog=catalog, run_params={"env": "mnist"})
    assert capsys.readouterr().out.splitlines() == [
        "itq: mean average precision 0.2500 (12 bits), 0.5000 (16 bits)",
        "All cells beside each other: kedro run --pipelines=measured_cells --env=mnist",
    ]


def test_the_command_that_puts_cells_beside_each_other_names_the_seed(capsys):
    catalog = DataCatalog()
    catalog["itq.b12.metrics"] = MemoryDataset({"method": "itq", "code_length": 12, "mean_average_precision": 0.5})
    pipeline = Pipeline([Node(lambda seed: seed, "params:seed", "itq.b12.metrics", name="measure")])
    run_params = {"env": None, "runtime_params": {"replicate": 2}}
    ResultTable().after_pipeline_run(pipeline=pipeline, catalog=catalog, run_params=run_params)
    assert capsys.readouterr().out.endswith("kedro run --pipelines=measured_cells --params=replicate=2\n")
