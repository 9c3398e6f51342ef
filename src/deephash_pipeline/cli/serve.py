"""``deephash-pipeline serve``: search in indexes over HTTP, and by a page."""

import logging
import socket
import sqlite3
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import click

from deephash_pipeline.cli.columns import print_left_out
from deephash_pipeline.cli.options import FOLDER, approximate_option, device_option, engine_option
from deephash_pipeline.cli.options import opened as open_index
from deephash_pipeline.cli.vectors import build_of_vectors, refuse_without_vectors
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.hamming.index_folder import holds_vectors
from deephash_pipeline.images.decoding import formats
from deephash_pipeline.photographs import ImageIndex, Watch
from deephash_pipeline.photographs.stored import AskedRuntime, is_foreign_model

ANYWHERE = ("0.0.0.0", "::")
HERE = ("127.0.0.1", "::1", "localhost")
SECONDS_TO_END = 10
SECONDS_BETWEEN_UPDATES = 10.0


@click.command()
@click.argument("indexes", type=FOLDER, nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 for a free one.")
@click.option("--token-file", type=FOLDER, help="Who sends the token in this file may add and remove.")
@click.option("--allowed-host", multiple=True, help="A name the service is addressed by; may be repeated.")
@click.option("--max-megabytes", default=10, show_default=True, type=click.IntRange(1, 1000), help="Of a request.")
@click.option("--max-megapixels", default=40, show_default=True, type=click.IntRange(1, 1000), help="Of what is sent.")
@click.option("--allow-urls", is_flag=True, help="Searches may name their picture by a URL of a public address.")
@click.option("--max-pending", default=128, show_default=True, type=click.IntRange(1), help="Requests at once.")
@click.option(
    "--runtime",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "torch", "onnx"]),
    help="What computes codes; auto is onnx, which loads at once, where INDEX has hasher.onnx.",
)
@click.option("--column", help="Column of --vectors in a Parquet file, or tensor of a safetensors file.")
@click.option("--vectors", type=FOLDER, help="Make INDEX of this file of vectors first, if it is not there yet.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@click.option("--watch", multiple=True, help="Folder to whose state INDEX is kept; may be repeated.")
@engine_option
@approximate_option
@device_option
def serve(
    indexes: Sequence[Path],
    host: str,
    port: int,
    token_file: Path | None,
    allowed_host: Sequence[str],
    max_megabytes: int,
    max_megapixels: int,
    allow_urls: bool,
    max_pending: int,
    runtime: AskedRuntime,
    column: str | None,
    vectors: Path | None,
    opens: bool,
    watch: Sequence[str],
    engine: str | None,
    approximate: bool,
    device: str,
) -> None:
    """Serve search in INDEXES over HTTP, with a page at /."""
    # A third of a second, which other commands can do without.
    uvicorn = required("uvicorn", "serve")
    from deephash_pipeline.service import ServiceSettings, create_app, read_token  # noqa: PLC0415
    from deephash_pipeline.service.observing import MOST_HEADER_BYTES, GuardedProtocol  # noqa: PLC0415

    hosts = ["127.0.0.1", "localhost", _in_url(host), *map(_allowed, allowed_host)]
    settings = ServiceSettings(
        token=None if token_file is None else read_token(token_file),
        most_bytes=max_megabytes * 2**20,
        most_pixels=max_megapixels * 10**6,
        most_pending=max_pending,
        allow_urls=allow_urls,
        hosts=["*"] if host in ANYWHERE and not allowed_host else hosts,
        # Who asks may be elsewhere, by the names of a proxy.
        tells_paths=host in HERE and not allowed_host,
    )
    if len({folder.resolve() for folder in indexes}) < len(indexes):
        raise InputError("an index is named twice: name each once")
    if engine is not None and (len(indexes) > 1 or token_file is not None):
        raise InputError("--engine is for one INDEX and without --token-file: change an index and export it again")
    if watch and (len(indexes) > 1 or engine is not None or vectors is not None or holds_vectors(indexes[0])):
        raise InputError("--watch is for one INDEX of images and without --engine: keep others by `index build`")
    if vectors is None:
        refuse_without_vectors({"column": column})
    elif len(indexes) > 1:
        raise InputError("--vectors make one INDEX: make the others by `index build`")
    if vectors is not None and not holds_vectors(indexes[0]):
        build_of_vectors(indexes[0], False, vectors=vectors, column=column)
    read_only = settings.token is None and not watch
    with ExitStack() as stack:
        listener = stack.enter_context(_listener(host, port))
        opened: dict[str, CodedItems] = {}
        again = {}
        for folder in indexes:
            names = (folder.name, str(folder), str(folder.resolve()))
            name = next(name for name in names if name and name not in opened)
            again[name] = partial(open_index, folder, device, engine, approximate, read_only, runtime)
            opened[name] = index = stack.enter_context(again[name]())
            if watch:
                assert isinstance(index, ImageIndex)
                stack.enter_context(_watched(index, watch))
        config = uvicorn.Config(
            create_app(opened, settings, again),
            http=partial(GuardedProtocol, seconds=settings.seconds),
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
            log_level="warning",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=SECONDS_TO_END,
        )
        port = listener.getsockname()[1]
        click.echo(f"http://{_in_url(host)}:{port}/ (Ctrl-C ends)")
        for name, items in opened.items():
            if isinstance(items, ImageIndex) and is_foreign_model(items.hasher):
                click.echo(f"{name} was made by PyTorch, codes by ONNX Runtime may differ in a bit", err=True)
        _log_plainly()
        if opens:
            # It listens already: a browser that is early waits.
            webbrowser.open(f"http://{'localhost' if host in ANYWHERE else _in_url(host)}:{port}/")
        uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def _watched(index: ImageIndex, paths: Sequence[str]) -> Iterator[None]:
    """Bring an index to the state of some folders, again and again until the block ends."""
    ended, logged = threading.Event(), set[str]()

    def is_new(record: logging.LogRecord) -> bool:
        before = len(logged)
        logged.add(record.getMessage())
        return len(logged) > before

    # A skipped file is skipped at every scan.
    formats.logger.addFilter(is_new)
    watching = Watch(index, paths)

    def watch() -> None:
        said = ""
        while not ended.is_set():
            try:
                report = watching.look()
                counts = (report.added, len(report.changed), report.renamed, report.removed)
                line = "{} added, {} changed, {} renamed, {} removed".format(*counts) if any(counts) else ""
                print_left_out(report.skipped)
            except (InputError, OSError, sqlite3.Error) as error:
                line = f"not brought to the state of {', '.join(paths)}: {error}"
            if line and (line != said or not line.startswith("not ")):
                click.echo(line, err=True)
            said = line
            ended.wait(SECONDS_BETWEEN_UPDATES)

    thread = threading.Thread(target=watch, name="watching", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        # What is encoded after that is encoded again by the next service.
        thread.join(SECONDS_TO_END)
        formats.logger.removeFilter(is_new)


def _in_url(host: str) -> str:
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host


def _allowed(name: str) -> str:
    if name.count(":") == 1 or "/" in name or (name != "*" and "*" in name.removeprefix("*.")):
        raise InputError(f"--allowed-host {name}: give a name without scheme, port and path; `*.` may stand before it")
    return _in_url(name)


def _listener(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"nobody can listen on {host} port {port} ({error}): choose another --port or --host"
        ) from error


def _log_plainly() -> None:
    """Write a line of JSON for each request, which the handler for people would break into several."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    requests = logging.getLogger("deephash_pipeline.service")
    requests.addHandler(handler)
    # Those of the root are for what goes wrong.
    requests.setLevel(logging.INFO)
    requests.propagate = False
