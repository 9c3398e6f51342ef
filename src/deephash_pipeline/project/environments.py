"""Environments that extend others: ``extends: digits`` in globals.yml, and a variant of the digits says what differs.

What an environment extends lies between ``conf/base`` and its own files, and is merged as Kedro merges an environment
into the base: parameters and globals name by name, of the catalog whole entries. Resolvers such as
``${globals:benchmark}`` answer for the environment that runs, in the files of those that it extends too. With
``without: [fine_tuning, baseline_hashing.sdh]`` in globals.yml, what those that it extends say of these parameters is
taken out, and what the base says holds.

Globals that nothing reads are refused: they are misspelt.
"""

import difflib
import logging
import os
import re
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from kedro.config import MissingConfigException, OmegaConfigLoader
from omegaconf import OmegaConf

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.project.parameters import flatten, unread_parameters

logger = logging.getLogger(__name__)

EXTENDS, WITHOUT, BENCHMARK = "extends", "without", "benchmark"
KNOWN = {EXTENDS, WITHOUT, BENCHMARK, "network", "raw_images", "source"}
"""Globals that an environment may state, besides those of the base and those that a file of its configuration reads."""
READ = re.compile(r"\$\{globals: *([\w.]+)")
LOCAL = "local"
ANOTHER_NUMBER = re.compile(r"[-+]?(0[0-7_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")
"""Plain scalars of which YAML 1.1 makes another number: octal and sexagesimal ones."""


class ExtendingConfigLoader(OmegaConfigLoader):
    """Kedro's loader, which also reads the environments that one extends."""

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

    @cached_property
    def extended(self) -> tuple[str, ...]:
        """The environments that the one that runs extends, the furthest first.

        Raises:
            InputError: one of them does not exist, extends itself, through others or not, or another without a
                benchmark of its own.
        """
        chain = [self.env or self.default_run_env]
        while chain[-1] != self.base_env:
            own = self._read_environment(chain[-1], "globals")
            if (name := own.get(EXTENDS)) is None:
                break
            stated = f"{self._globals_of(chain[-1])}: `{EXTENDS}: {name}`"
            if name in chain:
                raise InputError(f"{stated} makes a circle, {' -> '.join([*chain, name])}: take it out of one of them")
            if not (isinstance(name, str) and name and self._fs.isdir(self._get_conf_env_path(name))):
                raise InputError(f"{stated}, and there is no such environment: name a folder beside it")
            if BENCHMARK not in own:
                raise InputError(f"{stated} would write into the folders of {name}: add `{BENCHMARK}: {chain[-1]}`")
            chain.append(name)
        return tuple(reversed(chain[1:]))

    @property
    def _chain(self) -> tuple[str, ...]:
        """All environments that are read, the nearest last."""
        return self.base_env, *self.extended, self.env or self.default_run_env

    def _files(self, environment: str) -> list[str]:
        """Find what may be configuration in the folder of an environment."""
        found = self._fs.find(self._get_conf_env_path(environment))
        return [path for path in found if self._is_valid_config_path(Path(path)) and not self._is_hidden(path)]

    def _unread_files(self) -> list[str]:
        """Find those that no pattern matches."""
        patterns = [pattern for of_key in self.config_patterns.values() for pattern in of_key]
        folders = [self._get_conf_env_path(environment) for environment in self._chain]
        read = {path for folder in folders for pattern in patterns for path in self._fs.glob(f"{folder}/{pattern}")}
        return sorted({path for environment in self._chain for path in self._files(environment)} - read)

    def _globals_of(self, environment: str) -> str:
        return f"{Path(self.conf_source).name}/{environment}/globals.yml"

    def _read_environment(self, environment: str, key: str) -> dict[str, Any]:
        """Read what an environment alone says: patterns, duplicates and resolvers are Kedro's."""
        path = self._get_conf_env_path(environment)
        found: dict[str, Any] = self.load_and_merge_dir_config(
            path, self.config_patterns[key], key, set(), key == "credentials"
        )
        return found

    def _read_dir_configs(self, conf_path: str, patterns: Any, key: str, *more: Any) -> dict[Path, Any]:
        """Read files as Kedro does, and refuse numbers that would be taken for others, and for names."""
        found: dict[Path, Any] = super()._read_dir_configs(conf_path, patterns, key, *more)
        for path, content in found.items():
            file = os.path.relpath(path, Path(self.conf_source).parent)
            refuse_other_numbers(self._fs.cat_file(path.as_posix()).decode(), file)
            for name in content if OmegaConf.is_dict(content) else ():
                if not isinstance(name, str):
                    raise InputError(f"{file}: `{name}` is no text to YAML: write the name in quotes")
        return found

    def _merge_configs(self, config: dict[str, Any], env_config: dict[str, Any], key: str, env_path: str) -> Any:
        if key == "globals":
            self._refuse_unread(config)
        chain = self._chain[1:]
        # Whether what an environment takes out was there.
        found = {(by, name): False for by in chain for name in self._without(by)} if key == "parameters" else {}
        for environment in self.extended:
            between = self._read_environment(environment, key)
            for by, name in found:
                if chain.index(by) > chain.index(environment):
                    found[by, name] |= _take_out(between, name.split("."))
            config = super()._merge_configs(config, between, key, self._get_conf_env_path(environment))
        for by, name in (stated for stated, there in found.items() if not there):
            raise InputError(f"{self._globals_of(by)}: `{WITHOUT}` names `{name}`, which is not there: mend the name")
        merged = super()._merge_configs(config, env_config, key, env_path)
        return {name: value for name, value in merged.items() if key != "globals" or name not in (EXTENDS, WITHOUT)}

    def _without(self, environment: str) -> list[str]:
        """Name what an environment takes out of those that it extends.

        Raises:
            InputError: that is no list of names.
        """
        stated: list[str] = self._read_environment(environment, "globals").get(WITHOUT, [])
        if not (isinstance(stated, list) and all(isinstance(name, str) for name in stated)):
            raise InputError(
                f"{self._globals_of(environment)}: `{WITHOUT}: {stated}`: give a list of dotted names, such as "
                "[fine_tuning, baseline_hashing.sdh]"
            )
        return stated

    def _refuse_unread(self, base: dict[str, Any]) -> None:
        """Refuse globals of the environments that nothing reads.

        Raises:
            InputError: there is one.
        """
        files = [self._fs.cat_file(path) for environment in self._chain for path in self._files(environment)]
        read = KNOWN | flatten("", base).keys() | set(READ.findall(b"\n".join(files).decode(errors="replace")))
        for environment in self._chain[1:]:
            for name in unread_parameters(self._read_environment(environment, "globals"), read):
                nearest = difflib.get_close_matches(name, sorted(read), n=1, cutoff=0)[0]
                raise InputError(f"{self._globals_of(environment)}: nothing reads `{name}`: do you mean `{nearest}`?")


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


def _take_out(config: Any, name: list[str]) -> bool:
    """Take a nested entry out of a configuration; say whether it is there."""
    *above, last = name
    for part in above:
        config = config.get(part) if isinstance(config, dict) else None
    if not isinstance(config, dict) or last not in config:
        return False
    del config[last]
    return True
