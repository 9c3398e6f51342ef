import subprocess
import sys


def test_retrieval_is_imported_without_torch_kedro_pandas_or_mlflow():
    code = (
        "import sys, deephash_pipeline.retrieval as _;"
        "print(sorted({'torch', 'kedro', 'pandas', 'mlflow'} & sys.modules.keys()))"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"
