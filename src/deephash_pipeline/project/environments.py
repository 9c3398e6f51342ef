"""Environments that extend others: ``extends: digits`` in globals.yml, and a variant of the digits says what differs.

What an environment extends lies between ``conf/base`` and its own files, and is merged as Kedro merges an environment
into the base: parameters and globals name by name, of the catalog whole entries. Resolvers such as
``${globals:benchmark}`` answer for the environment that runs, in the files of those that it extends too. With
``without: [fine_tuning, baseline_hashing.sdh]`` in globals.yml, what those that it extends say of these parameters is
taken out, and what the base says holds.
"""

import logging
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from kedro.config import OmegaConfigLoader

from deephash_pipeline.common.errors import InputError

logger = logging.getLogger(__name__)

EXTENDS, WITHOUT = "extends", "without"
LOCAL = "local"
ANOTHER_NUMBER = re.compile(r"[-+]?(0[0-7_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")
"""Plain scalars of which YAML 1.1 makes another number: octal and sexagesimal ones."""


class ExtendingConfigLoader(OmegaConfigLoader):
    """Kedro's loader, which also reads the environments that one extends."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if LOCAL not in (self.env, self.default_run_env):
            for unread in sorted(Path(self.conf_source, LOCAL).rglob("*.yml")):
                logger.warning("%s is not read: move it to conf/<name>/, and add --env=<name>", unread)

    @cached_property
    def extended(self) -> tuple[str, ...]:
        """The environments that the one that runs extends, the furthest first.

        Raises:
            InputError: one of them does not exist, or extends itself, through others or not.
        """
        chain = [self.env or self.default_run_env]
        while (
            chain[-1] != self.base_env
            and (name := self._read_environment(chain[-1], "globals").get(EXTENDS)) is not None
        ):
            stated = f"{Path(self.conf_source).name}/{chain[-1]}/globals.yml: `{EXTENDS}: {name}`"
            if name in chain:
                raise InputError(f"{stated} makes a circle, {' -> '.join([*chain, name])}: take it out of one of them")
            if not (isinstance(name, str) and name and self._fs.isdir(self._get_conf_env_path(name))):
                raise InputError(f"{stated}, and there is no such environment: name a folder beside it")
            chain.append(name)
        return tuple(reversed(chain[1:]))

    def _read_environment(self, environment: str, key: str) -> dict[str, Any]:
        """Read what an environment alone says: patterns, duplicates and resolvers are Kedro's."""
        path = self._get_conf_env_path(environment)
        found: dict[str, Any] = self.load_and_merge_dir_config(
            path, self.config_patterns[key], key, set(), key == "credentials"
        )
        return found

    def _read_dir_configs(self, conf_path: str, patterns: Any, key: str, *more: Any) -> dict[Path, Any]:
        """Read files as Kedro does, and refuse numbers that would be taken for others."""
        found: dict[Path, Any] = super()._read_dir_configs(conf_path, patterns, key, *more)
        for path in found:
            name = str(path.relative_to(Path(self.conf_source).parent))
            refuse_other_numbers(self._fs.cat_file(path.as_posix()).decode(), name)
        return found

    def _merge_configs(self, config: dict[str, Any], env_config: dict[str, Any], key: str, env_path: str) -> Any:
        nearer = [*self.extended[1:], self.env or self.default_run_env]
        for at, environment in enumerate(self.extended):
            between = self._read_environment(environment, key)
            for other in nearer[at:] if key == "parameters" else ():
                for name in self._read_environment(other, "globals").get(WITHOUT, ()):
                    _take_out(between, name.split("."))
            config = super()._merge_configs(config, between, key, self._get_conf_env_path(environment))
        merged = super()._merge_configs(config, env_config, key, env_path)
        return {name: value for name, value in merged.items() if key != "globals" or name not in (EXTENDS, WITHOUT)}


def refuse_other_numbers(text: str, where: str) -> None:
    """Refuse plain numbers that YAML takes for others.

    Raises:
        InputError: one begins with 0, which is octal, or has colons, which are sixties.

    Example:
        >>> refuse_other_numbers("rates: [0.5, 10, '042']", "parameters.yml")
        >>> refuse_other_numbers("seed: 042", "parameters.yml")
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: parameters.yml: `042` would be read as 34: write ...
    """
    if not ANOTHER_NUMBER.search(text):
        return
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for token in yaml.scan(text, loader):
        if isinstance(token, yaml.ScalarToken) and token.plain and ANOTHER_NUMBER.fullmatch(token.value):
            raise InputError(
                f"{where}: `{token.value}` would be read as {yaml.safe_load(token.value)}: write the number without "
                "leading zeros and colons, or text in quotes"
            )


def _take_out(config: Any, name: list[str]) -> None:
    """Take a nested entry out of a configuration, if it is there."""
    *above, last = name
    for part in above:
        config = config.get(part) if isinstance(config, dict) else None
    if isinstance(config, dict):
        config.pop(last, None)
