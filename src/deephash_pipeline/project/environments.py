"""Environments: what of the configuration is in force, and which file says it.

An environment is a folder ``conf/<name>/``, as Kedro has it, or one file, ``conf/variants/<name>.yml``. Its globals may
have ``extends: <folder>``, a folder that extends none itself, and ``recipe: <name>``, a file of ``conf/recipes`` with
what several environments share. Layers are merged in this order, a later one over an earlier one:

    conf/base, the recipe of what is extended, what is extended, the own recipe, the environment itself, --params

Parameters and globals are merged name by name, the catalog by whole entries. Recipes and variants are files of
parameters, with their globals under the name ``globals``. Resolvers such as ``${globals:benchmark}`` answer for the
environment that runs, in all layers. `default` in a group of parameters has what the other blocks of it do not say.

Globals that nothing reads are refused: they are misspelt.
"""

import difflib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from kedro.config import MissingConfigException, OmegaConfigLoader
from omegaconf import OmegaConf

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.project.parameters import flatten, merged, unread_parameters
from deephash_pipeline.project.replicate import SEED_FOLDER, replicate_of, require_replicate, seed_folder

logger = logging.getLogger(__name__)

EXTENDS, RECIPE, BENCHMARK = "extends", "recipe", "benchmark"
RECIPES, VARIANTS = "recipes", "variants"
DEFAULT = "default"
KNOWN = {EXTENDS, RECIPE, BENCHMARK, "network", "raw_images", "source"}
"""Globals that an environment may state, besides those of the base and those that a file of its configuration reads."""
READ = re.compile(r"\$\{globals: *([\w.]+)")
LOCAL = "local"
ANOTHER_NUMBER = re.compile(r"[-+]?(0[0-7_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")
"""Plain scalars of which YAML 1.1 makes another number: octal and sexagesimal ones."""


def environments(conf: Path) -> list[str]:
    """Name the environments of a folder of configuration: folders in it, and files in its folder ``variants``."""
    folders = {folder.name for folder in conf.iterdir() if folder.is_dir() and not folder.name.startswith(".")}
    variants = {file.stem for file in (conf / VARIANTS).glob("*.yml")}
    return sorted((folders - {"base", LOCAL, RECIPES, VARIANTS}) | variants)


def place_of(conf: Path, environment: str) -> Path:
    """Give the folder of an environment, or its file if it has none."""
    return folder if (folder := conf / environment).is_dir() else conf / VARIANTS / f"{environment}.yml"


def further_layers(conf: Path, file: Path, content: Mapping[Any, Any]) -> Iterator[Path]:
    """Yield the folder that a file with globals extends, and its recipe; whether they are there is not looked at."""
    stated = content if file.name == "globals.yml" else content.get("globals")
    if isinstance(stated, Mapping):
        if extended := stated.get(EXTENDS):
            yield conf / str(extended)
        if recipe := stated.get(RECIPE):
            yield conf / RECIPES / f"{recipe}.yml"


class LayeredConfigLoader(OmegaConfigLoader):
    """Kedro's loader, which also reads recipes, variants, and what an environment extends."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for name in flatten("", self.runtime_params or {}):
            if name.startswith("_") or "._" in name:
                raise InputError(f"unknown parameter `{name}`: names that begin with _ are for files alone")
        if LOCAL not in (self.env, self.default_run_env):
            for unread in self._files(LOCAL):
                logger.warning("%s is not read: move it to conf/<name>/, and add --env=<name>", unread)
        with suppress(MissingConfigException):
            for unread in self._unread_files():
                logger.warning("%s is not read: name it globals.yml, parameters*.yml or catalog*.yml", unread)

    def __getitem__(self, key: str) -> dict[str, Any]:
        """Give what Kedro gives; of parameters each block with the defaults of its group."""
        found: dict[str, Any] = super().__getitem__(key)
        if key != "parameters":
            return found
        require_replicate(found, self.replicate)
        return with_defaults(found)

    @property
    def replicate(self) -> int:
        """Number of the seed of the run, 1 where none is given."""
        return replicate_of(self.runtime_params or {})

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Base, recipes and environments that are read, in the order in which they are merged.

        Each is a path below the folder of the configuration, of a folder or, without its suffix, of a file.

        Raises:
            InputError: `extends` or `recipe` names what is not there, or what extends another.
        """
        name = self.env or self.default_run_env
        if name == self.base_env:
            return (self.base_env,)
        own = name if self._is_folder(name) else f"{VARIANTS}/{name}"
        extended = self._stated(own, EXTENDS)
        if extended is not None:
            stated = f"{self.globals_of(own)}: `{EXTENDS}: {extended}`"
            if not (isinstance(extended, str) and extended and self._is_folder(extended)):
                raise InputError(f"{stated}, and there is no such environment: name a folder beside {self.base_env}")
            if further := self._stated(extended, EXTENDS):
                raise InputError(
                    f"{stated}, which extends {further}: extend that, and put what is shared into a recipe"
                )
        extending = [own] if extended is None else [extended, own]
        return (self.base_env, *(layer for each in extending for layer in (*self._recipe_of(each), each)))

    def _recipe_of(self, layer: str) -> Iterator[str]:
        """Yield the recipe that a layer states, if it does."""
        recipe = self._stated(layer, RECIPE)
        if recipe is not None:
            if not (isinstance(recipe, str) and recipe and self._fs.isfile(self.path_of(f"{RECIPES}/{recipe}"))):
                where = f"{Path(self.conf_source).name}/{RECIPES}"
                raise InputError(
                    f"{self.globals_of(layer)}: `{RECIPE}: {recipe}`, and there is no such file: name one of {where}"
                )
            yield f"{RECIPES}/{recipe}"

    def _stated(self, layer: str, name: str) -> Any:
        return self.read(layer, "globals").get(name)

    def _is_folder(self, layer: str) -> bool:
        return "/" not in layer and bool(self._fs.isdir(self._get_conf_env_path(layer)))

    def path_of(self, layer: str) -> str:
        """Give the path of the folder or file of a layer."""
        path = self._get_conf_env_path(layer)
        return path if self._is_folder(layer) else f"{path}.yml"

    def globals_of(self, layer: str) -> str:
        """Name the file with the globals of a layer."""
        return f"{Path(self.conf_source).name}/{layer}{'/globals.yml' if self._is_folder(layer) else '.yml'}"

    def _files(self, layer: str) -> list[str]:
        """Find what may be configuration in a layer."""
        found = self._fs.find(self.path_of(layer))
        return [path for path in found if self._is_valid_config_path(Path(path)) and not self._is_hidden(path)]

    def _unread_files(self) -> list[str]:
        """Find those in folders that no pattern matches."""
        patterns = [pattern for of_key in self.config_patterns.values() for pattern in of_key]
        folders = [self.path_of(layer) for layer in self.layers if self._is_folder(layer)]
        read = {path for folder in folders for pattern in patterns for path in self._fs.glob(f"{folder}/{pattern}")}
        return sorted({path for layer in self.layers if self._is_folder(layer) for path in self._files(layer)} - read)

    def read(self, layer: str, key: str) -> dict[str, Any]:
        """Read what a layer alone says: patterns, duplicates and resolvers are Kedro's."""
        found: dict[str, Any] = self.load_and_merge_dir_config(
            self._get_conf_env_path(layer), self.config_patterns[key], key, set(), key == "credentials"
        )
        return found

    def statements(self, key: str) -> Iterator[tuple[str, Any]]:
        """Yield each file that is read and what it says, resolvers as they are written, in the order of the layers."""
        for layer in self.layers:
            path = self._get_conf_env_path(layer)
            for file, content in self._read_dir_configs(path, self.config_patterns[key], key, set()).items():
                yield self._shown(file), OmegaConf.to_container(content)

    def _shown(self, file: Path) -> str:
        return os.path.relpath(file, Path(self.conf_source).parent)

    def _read_dir_configs(self, conf_path: str, patterns: Any, key: str, *more: Any) -> dict[Path, Any]:
        """Read files as Kedro does, and refuse numbers that would be taken for others, and for names."""
        path = Path(conf_path)
        if is_folder := self._fs.isdir(path.as_posix()):
            found: dict[Path, Any] = super()._read_dir_configs(conf_path, patterns, key, *more)
        else:
            # Kedro asks for the folder of the environment that runs, and that may be a file.
            folder = path.parent if path.parent.name in (RECIPES, VARIANTS) else path.parent / VARIANTS
            found = super()._read_dir_configs(str(folder), [f"{path.name}.yml"], key, *more)
            if not found:
                raise MissingConfigException(f"there is no environment `{path.name}`, neither {path} nor {folder}")
        for file, content in found.items():
            refuse_other_numbers(self._fs.cat_file(file.as_posix()).decode(), self._shown(file))
            for name in content if OmegaConf.is_dict(content) else ():
                if not isinstance(name, str):
                    raise InputError(f"{self._shown(file)}: `{name}` is no text to YAML: write the name in quotes")
        return found if is_folder else {file: _section(content, key) for file, content in found.items()}

    def _merge_configs(self, config: dict[str, Any], env_config: dict[str, Any], key: str, env_path: str) -> Any:
        if key == "globals":
            self._refuse_unread(config)
            folder = {SEED_FOLDER: seed_folder(self.replicate)}
            env_config = {BENCHMARK: self.env or self.default_run_env, **env_config, **folder}
        for layer in self.layers[1:-1]:
            config = super()._merge_configs(config, self.read(layer, key), key, self._get_conf_env_path(layer))
        found = super()._merge_configs(config, env_config, key, env_path)
        return {name: value for name, value in found.items() if key != "globals" or name not in (EXTENDS, RECIPE)}

    def _refuse_unread(self, base: dict[str, Any]) -> None:
        """Refuse globals of the environments that nothing reads.

        Raises:
            InputError: there is one.
        """
        files = [self._fs.cat_file(path) for layer in self.layers for path in self._files(layer)]
        read = KNOWN | flatten("", base).keys() | set(READ.findall(b"\n".join(files).decode(errors="replace")))
        for layer in self.layers[1:]:
            for name in unread_parameters(self.read(layer, "globals"), read):
                group = name.partition(".")[0]
                if any(group in said for _, said in self.statements("parameters")):
                    remedy = f"`{group}` is a group of parameters: write it into parameters.yml"
                else:
                    nearest = difflib.get_close_matches(name, sorted(read), n=1, cutoff=0)[0]
                    remedy = f"do you mean `{nearest}`?"
                raise InputError(f"{self.globals_of(layer)}: nothing reads `{name}`: {remedy}")


def with_defaults(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Give every block of a group what the block `default` has and it does not say.

    >>> with_defaults({"fine_tuning": {"default": {"epochs": 9, "rate": 2}, "csq": {"rate": 1}}})
    {'fine_tuning': {'csq': {'epochs': 9, 'rate': 1}}}
    """
    return {name: _filled(group) if isinstance(group, Mapping) else group for name, group in parameters.items()}


def _filled(group: Mapping[str, Any]) -> Mapping[str, Any]:
    default = group.get(DEFAULT)
    if not isinstance(default, Mapping):
        return group
    return {name: merged(default, block) for name, block in group.items() if name != DEFAULT}


def _section(content: Any, key: str) -> Any:
    """Take out of a recipe or a variant what it says of parameters or globals; of other things it says none."""
    if key == "globals":
        return content.get("globals") or OmegaConf.create()
    if key == "parameters":
        return OmegaConf.masked_copy(content, [name for name in content if name != "globals"])
    return OmegaConf.create()


def refuse_other_numbers(text: str, where: str) -> None:
    """Refuse plain numbers that YAML takes for others.

    Raises:
        InputError: one begins with 0, which is octal, or has colons, which are sixties; or a line is no YAML.

    Example:
        >>> refuse_other_numbers("rates: [0.5, 10, '042']", "parameters.yml")
        >>> refuse_other_numbers("seed: 042", "parameters.yml")
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: parameters.yml: `042` would be read as 34: write ...
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        scalars = [event for event in yaml.parse(text, loader) if isinstance(event, yaml.ScalarEvent)]
    except yaml.YAMLError as error:
        raise InputError(f"{where}: that is no YAML: close quotes and brackets, or put all of it in quotes") from error
    for scalar in scalars:
        if not scalar.style and ANOTHER_NUMBER.fullmatch(scalar.value):
            raise InputError(
                f"{where}: `{scalar.value}` would be read as {yaml.safe_load(scalar.value)}: write the number without "
                "leading zeros and colons, or text in quotes"
            )
