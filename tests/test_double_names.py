"""One name stands for one thing: few public names are defined in several modules."""

from tests.double_names import definitions, double_names

ENTRY_POINTS = {
    *("create_pipeline", "main", "logger"),
    *("export_huggingface", "export_onnx", "log_model", "search"),
    *("build", "usual_input", "loss_and_gradient", "pair_weights"),
}
"""Names that several modules have on purpose: what Kedro, Python and logging look for; commands named as the functions
that they call; and what modules of one kind have, networks and kernels of one loss."""

MOST_OF_FUNCTIONS_AND_CLASSES = 3
MOST_OF_CONSTANTS = 0
"""As many as there were when they were counted: a new one takes another name."""


def test_few_functions_and_classes_share_a_name():
    found = {name: modules for name, modules in double_names().items() if not name.isupper()}
    assert found.keys() >= ENTRY_POINTS
    assert len(found.keys() - ENTRY_POINTS) <= MOST_OF_FUNCTIONS_AND_CLASSES, found


def test_few_constants_share_a_name():
    found = {name: modules for name, modules in double_names().items() if name.isupper()}
    assert len(found) <= MOST_OF_CONSTANTS, found


def test_the_tool_sees_functions_classes_and_constants():
    found = definitions()
    assert found["pack_bits"] == ["retrieval/codes.py"]
    assert found["ProjectGraph"] == ["project/freshness/graph.py"]
    assert found["SHOWN_CODE_LENGTH"] == ["common/cell.py"]
