"""Parameters in a notebook, by the names that the configuration gives them."""

from pathlib import Path

from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project

ROOT = Path(__file__).resolve().parents[2]


def test_every_named_parameter_can_be_loaded(monkeypatch):
    monkeypatch.chdir(ROOT)
    bootstrap_project(ROOT)
    with KedroSession.create() as session:
        catalog = session.load_context().catalog
    assert catalog.load("params:baseline_hashing.itq") == {"iterations": 50}
    assert catalog.load("params:baseline_hashing.itq.iterations") == 50
    assert catalog.load("params:fine_tuning.csq.training").epochs == catalog.load(
        "params:fine_tuning.csq.training.epochs"
    )
    assert "params:cells.itq.b48" in catalog
    assert "params:cells.itq.b48.method" not in set(catalog)
