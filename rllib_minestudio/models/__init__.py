"""Policies: networks, action distributions, and the RLModules that adapt them to RLlib."""

from typing import TYPE_CHECKING, Any

from rllib_minestudio.foundation.names import load_public_name

if TYPE_CHECKING:
    from rllib_minestudio.models.distributions import ActionDistribution
    from rllib_minestudio.models.policy import RecurrentRLModule
    from rllib_minestudio.models.policy_checks import POLICY_CHECKS, check_policy
    from rllib_minestudio.models.rl_modules import heads_for
    from rllib_minestudio.models.value_head import ValueHead

__all__ = [
    "POLICY_CHECKS",
    "ActionDistribution",
    "RecurrentRLModule",
    "ValueHead",
    "check_policy",
    "heads_for",
]

_HOME_OF = {
    "heads_for": "rllib_minestudio.models.rl_modules",
    "ActionDistribution": "rllib_minestudio.models.distributions",
    "RecurrentRLModule": "rllib_minestudio.models.policy",
    "POLICY_CHECKS": "rllib_minestudio.models.policy_checks",
    "check_policy": "rllib_minestudio.models.policy_checks",
    "ValueHead": "rllib_minestudio.models.value_head",
}


def __getattr__(name: str) -> Any:
    return load_public_name(__name__, name, _HOME_OF)
