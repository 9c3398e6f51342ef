"""How strict a run is; it goes from the command to the hooks and the runner as an argument."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Policy:
    """How strict a run is, and by which configuration.

    Attributes:
        stale_allowed: whether a run may read what is stale.
        forced: whether what is finished is made anew, trainings with checkpoints too.
        skipping: whether what is up to date is left out, see `nodes_to_run`.
        whole: whether a run makes all it needs: then it is worth while to get workers ready.
        conf_source: folder of the configuration; None for the project's.
    """

    stale_allowed: bool = False
    forced: bool = False
    skipping: bool = False
    whole: bool = False
    conf_source: str | None = None


POLICY_KEY = "_policy"
"""Where a command puts the policy among the parameters of its run: Kedro hands nothing else to hooks."""


def with_policy(parameters: Mapping[str, Any] | None, policy: Policy) -> dict[str, Any]:
    """Put a policy among the parameters of a run, for the loader of the configuration to take out.

    >>> without_policy(with_policy({"replicate": 2}, Policy(forced=True)))
    ({'replicate': 2}, Policy(stale_allowed=False, forced=True, skipping=False, whole=False, conf_source=None))
    """
    return {**(parameters or {}), POLICY_KEY: policy}


def without_policy(parameters: Mapping[str, Any] | None) -> tuple[dict[str, Any], Policy]:
    """Give the parameters of a run, and the policy among them; that of a run that has none is strict."""
    given = dict(parameters or {})
    policy = given.get(POLICY_KEY)
    # What somebody else calls so is refused as a parameter.
    if not isinstance(policy, Policy):
        return given, Policy()
    del given[POLICY_KEY]
    return given, policy
