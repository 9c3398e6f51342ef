"""A service in a thread, a port that nobody listens on, and Chromium, which sees nothing else."""

import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

in_a_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")


@contextmanager
def running(app, **options):
    """Serve an app; yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, **options))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def dumped(address, profile, *options):
    """The document at an address after twenty seconds, which pass at once where nothing is waited for."""
    command = [
        *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--virtual-time-budget=20000", *options),
        *(f"--user-data-dir={profile}", "--dump-dom", address),
    ]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=240, check=True).stdout
