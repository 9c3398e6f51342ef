"""The table of commands: what help says of each, and where it is, so that help imports none."""

from typing import NamedTuple


class Command(NamedTuple):
    """A command as help shows it.

    Attributes:
        place: module beside this one, and name in it.
        summary: what it does, in one line of a terminal.
        in_project: True if it works in a Kedro project; others import no Kedro.
    """

    place: str
    summary: str
    in_project: bool = False


COMMANDS = {
    "run": Command("run.run", "Run the pipeline.", in_project=True),
    "new": Command("project.new", "Make a project to run in.", in_project=True),
    "methods": Command("methods.methods", "List all methods, and what each needs."),
    "parameters": Command("parameters.parameters", "Print the parameters in force, and where from.", in_project=True),
    "hasher": Command("project.hasher", "Write the hasher of a cell to one file.", in_project=True),
    "status": Command("provenance.status", "Say what is fresh, stale or missing.", in_project=True),
    "encode": Command("encode.encode", "Encode any number of images."),
    "index": Command("index.index", "Make an index of images or vectors."),
    "search": Command("search.search", "Find the nearest images or vectors."),
    "duplicates": Command("duplicates.duplicates", "Find files that show the same picture."),
    "pairs": Command("pairs.pairs", "List all near pairs of an index."),
    "serve": Command("serve.serve", "Serve search over HTTP, with a page."),
    "export": Command("export.export", "Write an index to PostgreSQL or Milvus."),
    "export-onnx": Command("package.export_onnx", "Write a hasher as an ONNX file."),
    "export-huggingface": Command(
        "project_package.export_huggingface", "Write a hasher for the Hugging Face Hub.", in_project=True
    ),
    "log-model": Command("project_package.log_model", "Log a hasher as a model of MLflow.", in_project=True),
}
"""Name -> command, in the order of help."""
