"""Names that pages of earlier versions gave still lead to what they named, and say where it is."""

import subprocess
import sys
from importlib import import_module

import pytest

OF_EARLIER_PAGES = {
    "search.HammingIndex": "hamming",
    "search.ByFeatures": "hamming",
    "search.vectors.VectorIndex": "embeddings",
    "search.images.ImageIndex": "photographs",
    "search.encoding.encode_source": "encoding",
    "search.encoding.CodeFolder": "encoding",
    "search.engines.open_export": "engines",
    "search.engines.export_index": "engines",
    "search.serving.create_app": "service",
}


@pytest.mark.parametrize("old", OF_EARLIER_PAGES)
def test_an_earlier_name_leads_to_the_same_object_with_a_warning_that_names_its_room(old):
    module, _, name = old.rpartition(".")
    room = f"deephash_pipeline.{OF_EARLIER_PAGES[old]}"
    with pytest.warns(DeprecationWarning, match=rf"`deephash_pipeline\.{module}` is `{room}` since") as said:
        found = getattr(import_module(f"deephash_pipeline.{module}"), name)
    assert found is getattr(import_module(room), name)
    assert said[0].filename == __file__


def test_a_script_that_imports_an_earlier_name_is_warned_and_goes_on():
    script = "from deephash_pipeline.search import HammingIndex, images\nprint(len(HammingIndex(8)), images.ImageIndex)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("0 <class 'deephash_pipeline.photographs.index.ImageIndex'>")
    assert "<string>:1: DeprecationWarning" in done.stderr


def test_a_name_that_never_was_is_not_found():
    with pytest.raises(ImportError, match="no_such_name"):
        exec("from deephash_pipeline.search import no_such_name")
    with pytest.raises(ModuleNotFoundError):
        import_module("deephash_pipeline.search.vectors.index")
