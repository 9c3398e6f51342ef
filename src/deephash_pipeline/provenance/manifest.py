"""The manifest beside an artefact: what it is, and what it was made from and by."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.provenance.digests import file_digest, text_digest

SUFFIX = ".provenance.json"
MANIFEST_FORMAT = 2
SEAL = ', "seal": "'
REMEDY = "delete it, and a run makes it again"


class DamagedError(InputError):
    """An artefact or its manifest is not what was written."""


@dataclass(frozen=True)
class Origin:
    """What an artefact is made from and by.

    Attributes:
        node: node that makes it.
        recipe: digest of the node's parameters and code, and of the recipes of its inputs, up to the raw images.
        inputs: name -> digest of the artefacts that the node reads.
        parameters: dotted name -> value of those that the artefact owes itself to, also by its inputs; ``auto`` as what
            it was where the node ran; and the digests of what no node makes.
        code: version and commit of the package, versions of Python and PyTorch.
        command: command line that was given.
    """

    node: str
    recipe: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True)
class Manifest:
    """What is known of an artefact.

    Attributes:
        name: name of the dataset in the catalog.
        size: size of its file, in bytes.
        digest: digest of the content of its file.
        origin: what it was made from and by.
    """

    name: str
    size: int
    digest: str
    origin: Origin


def manifest_path(path: Path) -> Path:
    """Name the manifest of a file.

    Example:
        >>> manifest_path(Path("itq/b12/codes.npz")).as_posix()
        'itq/b12/codes.npz.provenance.json'
    """
    return path.with_name(path.name + SUFFIX)


def manifest_text(name: str, path: Path, origin: Origin) -> str:
    """Describe the file at `path`, which need not have its final name yet: as JSON, sealed with its own digest.

    Equal files of equal origin have equal texts.
    """
    content = {"format": MANIFEST_FORMAT, "name": name, "size": path.stat().st_size, "digest": file_digest(path)}
    text = f'{{"content": {json.dumps(content | {"origin": vars(origin)}, sort_keys=True)}'
    return f'{text}{SEAL}{text_digest(text)}"}}\n'


def read_manifest(path: Path) -> Manifest | None:
    """Read the manifest of the artefact at `path`; None if it has none.

    Raises:
        DamagedError: there is one, but it is not what was written.
    """
    try:
        text = manifest_path(path).read_bytes()
    except FileNotFoundError:
        return None
    try:
        sealed, _, _seal = text.decode().rpartition(SEAL)
        if text.decode() != f'{sealed}{SEAL}{text_digest(sealed)}"}}\n':
            raise ValueError("its seal is broken")
        content = json.loads(text)["content"]
        if content.pop("format") != MANIFEST_FORMAT:
            raise ValueError("its format is another one")
        return Manifest(**{**content, "origin": Origin(**content["origin"])})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedError(f"the manifest of {path} is damaged: {REMEDY}") from error


def checked(path: Path) -> Manifest | None:
    """Read the manifest of the file at `path`, and compare the file with it.

    Returns:
        The manifest; None without one.

    Raises:
        FileNotFoundError: the file is not there.
        DamagedError: it is another one, or not what was written.
    """
    manifest, size = read_manifest(path), path.stat().st_size
    if manifest is None:
        return None
    if size != manifest.size:
        raise DamagedError(f"{path} is damaged, it has {size:,} bytes instead of {manifest.size:,}: {REMEDY}")
    if file_digest(path) != manifest.digest:
        raise DamagedError(f"{path} is damaged, its content is not what its manifest says: {REMEDY}")
    return manifest
