"""Environments that extend others: ``extends: digits`` in globals.yml, and a variant of the digits says what differs.

What an environment extends lies between ``conf/base`` and its own files, and is merged as Kedro merges an environment
into the base: parameters and globals name by name, of the catalog whole entries. Resolvers such as
``${globals:benchmark}`` answer for the environment that runs, in the files of those that it extends too.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

from kedro.config import OmegaConfigLoader

from deephash_pipeline.errors import InputError

EXTENDS = "extends"


class ExtendingConfigLoader(OmegaConfigLoader):
    """Kedro's loader, which also reads the environments that one extends."""

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

    def _merge_configs(self, config: dict[str, Any], env_config: dict[str, Any], key: str, env_path: str) -> Any:
        for environment in self.extended:
            between = self._read_environment(environment, key)
            config = super()._merge_configs(config, between, key, self._get_conf_env_path(environment))
        merged = super()._merge_configs(config, env_config, key, env_path)
        return {name: value for name, value in merged.items() if (key, name) != ("globals", EXTENDS)}
