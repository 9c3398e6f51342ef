"""A service in a thread, and Chromium, which sees nothing else."""

import shutil
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from tests.search.serving.pictures import ADDRESS

in_a_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")


@contextmanager
def running(app):
    """Serve an app; yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"{ADDRESS}:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def dumped(address, profile):
    """The document at an address after ten seconds, which pass at once where nothing is waited for."""
    command = [
        *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--virtual-time-budget=10000"),
        *(f"--user-data-dir={profile}", "--dump-dom", address),
    ]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True).stdout
