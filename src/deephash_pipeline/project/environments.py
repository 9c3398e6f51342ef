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
import importlib
import io
import logging
import os
import re
import sys
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from kedro.config import MissingConfigException, OmegaConfigLoader
from omegaconf import OmegaConf

from deephash_pipeline.common.errors import InputError, blamed_on
from deephash_pipeline.common.parameters import flatten
from deephash_pipeline.project.other_numbers import refuse_other_numbers
from deephash_pipeline.project.parameters import unread_parameters, with_defaults
from deephash_pipeline.project.policy import without_policy
from deephash_pipeline.project.replicate import SEED_FOLDER, replicate_of, require_replicate, seed_folder

logger = logging.getLogger(__name__)

EXTENDS, RECIPE, BENCHMARK = "extends", "recipe", "benchmark"
RECIPES_FOLDER, VARIANTS_FOLDER = "recipes", "variants"
KNOWN = {EXTENDS, RECIPE, BENCHMARK, "network", "raw_images", "source"}
"""Globals that an environment may state, besides those of the base and those that a file of its configuration reads."""
READ = re.compile(r"\$\{globals: *([\w.]+)")
LOCAL_FOLDER = "local"
CONFIGURATION_SUFFIXES = (".yml", ".yaml", ".json")


def environments(conf: Path) -> list[str]:
    """Name the environments of a folder of configuration: folders in it, and files in its folder ``variants``."""
    folders = {folder.name for folder in conf.iterdir() if folder.is_dir() and not folder.name.startswith(".")}
    variants = {file.stem for file in (conf / VARIANTS_FOLDER).glob("*.yml")}
    return sorted((folders - {"base", LOCAL_FOLDER, RECIPES_FOLDER, VARIANTS_FOLDER}) | variants)


class LayeredConfigLoader(OmegaConfigLoader):
    """Kedro's loader, which also reads recipes, variants, and what an environment extends."""

    def __init__(self, conf_source: Any, env: str | None = None, runtime_params: Any = None, **options: Any) -> None:
        own, self.policy = without_policy(runtime_params)
        super().__init__(str(conf_source), env, own, **options)
        for name in flatten("", self.runtime_params or {}):
            if name.startswith("_") or "._" in name:
                raise InputError(f"unknown parameter `{name}`: names that begin with _ are for files alone")
        if "kedro_viz.server" in sys.modules:
            # This process is to show or to write pictures of pipelines; Kedro-Viz calls no hooks of a project.
            importlib.import_module("deephash_pipeline.project.viz").lay_out_late()
        if LOCAL_FOLDER not in (self.env, self.default_run_env):
            for unread in self._all_files(LOCAL_FOLDER):
                logger.warning("%s is not read: move it to conf/<name>/, and add --env=<name>", unread)
        for unread in self._unread_files():
            logger.warning("%s is not read: name it globals.yml, parameters*.yml or catalog*.yml", unread)

    def __getitem__(self, key: str) -> dict[str, Any]:
        """Give the layers merged, each over those before it; of parameters each block with the defaults of its group.

        Raises:
            InputError: there is no environment of this name, or a file of it cannot be used.
            MissingConfigException: there are no files.
        """
        if key in self.data:
            return {**self.data[key]}
        OmegaConf.register_new_resolver("runtime_params", self._run_parameter, replace=True)
        if not any(list(self._found(layer, key)) for layer in self.layers) and key != "globals":
            raise MissingConfigException(f"{self.conf_source} has no files of {key} for {', '.join(self.layers)}")
        read = [self.read(layer, key) for layer in self.layers]
        if key == "globals":
            self._refuse_unread(read[0])
            own = {BENCHMARK: self.env or self.default_run_env}
            found = merged_layers([*read[:-1], own, read[-1], {SEED_FOLDER: seed_folder(self.replicate)}])
            return {name: value for name, value in found.items() if name not in (EXTENDS, RECIPE)}
        if key != "parameters":
            # Entries of the catalog are replaced as a whole.
            return dict(ChainMap(*reversed(read)))
        found = merged_layers(read)
        require_replicate(found, self.replicate)
        # They are asked for three times in a command.
        self.data[key] = with_defaults(found)
        return {**self.data[key]}

    @property
    def replicate(self) -> int:
        """Number of the seed of the run, 1 where none is given."""
        return replicate_of(self.runtime_params or {})

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Base, recipes and environments that are read, in the order in which they are merged.

        Each is a path below the configuration, of a folder or, without its suffix, of a file.

        Raises:
            InputError: there is no such environment, or `extends` or `recipe` names what is not there, or what extends
                another.
        """
        name = self.env or self.default_run_env
        if name == self.base_env:
            return (self.base_env,)
        own = name if self._is_folder(name) else f"{VARIANTS_FOLDER}/{name}"
        if not (own == name or self._files.isfile(self.path_of(own))):
            conf = Path(self.conf_source)
            known = f"{conf.name}/ has {', '.join(environments(conf))}" if conf.is_dir() else f"look into {conf}"
            raise InputError(f"there is no environment `{name}`: {known}")
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
            if not (
                isinstance(recipe, str) and recipe and self._files.isfile(self.path_of(f"{RECIPES_FOLDER}/{recipe}"))
            ):
                where = f"{Path(self.conf_source).name}/{RECIPES_FOLDER}"
                raise InputError(
                    f"{self.globals_of(layer)}: `{RECIPE}: {recipe}`, and there is no such file: name one of {where}"
                )
            yield f"{RECIPES_FOLDER}/{recipe}"

    def _stated(self, layer: str, name: str) -> Any:
        return self.read(layer, "globals").get(name)

    def _run_parameter(self, name: str, default: Any = None) -> Any:
        found = OmegaConf.select(OmegaConf.create(self.runtime_params or {}), name, default=default)
        if found is None:
            raise InputError(f"the configuration reads `{name}` of the run: give it, --params={name}=...")
        return found

    def _is_folder(self, layer: str) -> bool:
        return "/" not in layer and bool(self._files.isdir(self._place(layer)))

    @property
    def _files(self) -> Any:
        """Where the configuration lies: a folder, or an archive of one."""
        # Private: Kedro has opened it, by its kind.
        return self._fs

    def _place(self, layer: str) -> str:
        # Private: only Kedro knows what an archive calls its folder.
        return self._get_conf_env_path(layer)

    def path_of(self, layer: str) -> str:
        """Give the path of the folder or file of a layer."""
        path = self._place(layer)
        return path if self._is_folder(layer) else f"{path}.yml"

    def globals_of(self, layer: str) -> str:
        """Name the file with the globals of a layer."""
        return f"{Path(self.conf_source).name}/{layer}{'/globals.yml' if self._is_folder(layer) else '.yml'}"

    def _all_files(self, layer: str) -> list[str]:
        """Find what may be configuration in a layer."""
        place = self.path_of(layer)
        found = (path for path in self._files.find(place) if Path(path).suffix in CONFIGURATION_SUFFIXES)
        return [path for path in found if not any(part.startswith(".") for part in path[len(place) :].split("/"))]

    def _found(self, layer: str, key: str) -> Iterator[str]:
        """Find the files of a layer that are read for a key; recipes and variants have parameters and globals alone."""
        if not self._is_folder(layer):
            yield from [self.path_of(layer)] if key in ("globals", "parameters") else []
            return
        patterns = (f"{self.path_of(layer)}/{pattern}" for pattern in self.config_patterns[key])
        matching = {path for pattern in patterns for path in self._files.glob(pattern)}
        yield from (path for path in self._all_files(layer) if path in matching)

    def _unread_files(self) -> list[str]:
        """Find those in folders that no pattern matches."""
        folders = [layer for layer in self.layers if self._is_folder(layer)]
        read = {path for layer in folders for key in self.config_patterns for path in self._found(layer, key)}
        return sorted({path for layer in folders for path in self._all_files(layer)} - read)

    def read(self, layer: str, key: str) -> dict[str, Any]:
        """Read what a layer alone says: patterns, duplicates and resolvers are Kedro's.

        Raises:
            InputError: a file cannot be used, or a number would be taken for another, or for a name.
        """
        if self._is_folder(layer):
            for file in self._found(layer, key):
                self._content(file)
            options: Any = self.config_patterns[key], key, set(), key == "credentials"
            return {**self.load_and_merge_dir_config(self._place(layer), *options)}
        stated = _section(self._content(self.path_of(layer)), key)
        stated = OmegaConf.merge(stated, self.runtime_params or {}) if key == "parameters" else stated
        return {str(name): value for name, value in _resolved(stated).items() if not str(name).startswith("_")}

    def statements(self, key: str) -> Iterator[tuple[str, Any]]:
        """Yield each file that is read and what it says, resolvers as they are written, in the order of the layers."""
        for layer in self.layers:
            for file in self._found(layer, key):
                content = self._content(file)
                said = content if self._is_folder(layer) else _section(content, key)
                yield self._shown(file), OmegaConf.to_container(said)

    def _shown(self, file: str) -> str:
        return os.path.relpath(file, Path(self.conf_source).parent)

    def _content(self, file: str) -> Any:
        """Read a file, and refuse what is no mapping, and numbers that would be taken for others, and for names."""
        with blamed_on(file, "mend it, in UTF-8"):
            text: str = self._files.cat_file(file).decode()
            content = OmegaConf.load(io.StringIO(text))
            said = OmegaConf.to_container(content)
            # OmegaConf takes text alone for a name without a value.
            if not isinstance(said, dict) or [*said.values()] == [None]:
                raise ValueError("it has no names with values, as in `name: value`")
        refuse_other_numbers(text, self._shown(file))
        for name in said:
            if not isinstance(name, str):
                raise InputError(f"{self._shown(file)}: `{name!r}` is no text to YAML: write the name in quotes")
        return content

    def _refuse_unread(self, base: dict[str, Any]) -> None:
        """Refuse globals of the environments that nothing reads.

        Raises:
            InputError: there is one.
        """
        files = [self._files.cat_file(path) for layer in self.layers for path in self._all_files(layer)]
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


def merged_layers(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge mappings name by name, each over those before it."""
    return dict(_resolved(OmegaConf.merge(*map(dict, layers))))


def _resolved(content: Any) -> Any:
    return OmegaConf.to_container(content, resolve=True)


def _section(content: Any, key: str) -> Any:
    """Take out of a recipe or a variant what it says of parameters or globals; of other things it says none."""
    if key == "globals":
        return content.get("globals") or OmegaConf.create()
    if key == "parameters":
        return OmegaConf.masked_copy(content, [name for name in content if name != "globals"])
    return OmegaConf.create()
