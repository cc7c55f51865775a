"""What the configs of all algorithms that train a policy with a memory have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.models import MODEL_DEFAULTS

from rllib_minestudio.algorithms.envs import known_spaces, suited_env_config
from rllib_minestudio.algorithms.options.ppo import INITIAL_PRIOR
from rllib_minestudio.algorithms.setting_checks import setting_problems, unknown_key_problems
from rllib_minestudio.checkpoints.lookup import pinned
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.policies import find_policy
from rllib_minestudio.models.recurrent_rl_module import RecurrentRLModule
from rllib_minestudio.observations import keys_of
from rllib_minestudio.option_checks import broken_rule
from rllib_minestudio.option_fields import group_of

if TYPE_CHECKING:
    from typing_extensions import Self


class PolicyAlgorithmConfig(AlgorithmConfig):
    """A config whose module is a `RecurrentRLModule`, and which has options of its own.

    Attributes:
        OPTIONS: The dataclass that declares them; each is an attribute of the config. Where the
            value is a mapping, keys that are given are added to those set before; so are the
            options of `model`.
    """

    OPTIONS: ClassVar[type]
    module_class: str

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Set what `training` was given: options of ours, and arguments of RLlib's `training`."""
        given = {name: value for name, value in options.items() if value is not NotProvided}
        own = {"model", *(option.name for option in fields(self.OPTIONS))}
        super().training(**{name: given[name] for name in given.keys() - own})
        for name in own & given.keys():
            self._set_option(name, given[name])

    def update_from_dict(self, config_dict: Mapping[str, Any]) -> Self:
        """Set options from a mapping, as YAML files and Tune do.

        Raises:
            InvalidOptionsError: There is no option of that name; RLlib would take it in silence.
        """
        # Tune notes its own facts under names such as __trial_info__.
        rest = {key: value for key, value in config_dict.items() if not key.startswith("__")}
        problems = unknown_key_problems(rest, self)
        if problems:
            raise InvalidOptionsError(problems)
        if "learner_class" in rest:
            self.training(learner_class=rest.pop("learner_class"))
        for name in ("model", *self._merged_options()):
            value = rest.pop(name, NotProvided)
            if value is not NotProvided and not isinstance(value, Mapping):
                rule = "must be a mapping; leave it out for its defaults"
                raise InvalidOptionsError(broken_rule(name, value, rule))
            # `to_dict` also lists the defaults of RLlib's old API stack under `model`.
            if value is not NotProvided and not value.keys() >= MODEL_DEFAULTS.keys():
                self._set_option(name, value)
        super().update_from_dict(rest)
        return self

    def refuse_settings(self, defaults: PolicyAlgorithmConfig, refused: Mapping[str, str]) -> None:
        """Refuse what RLlib has a setting for and this algorithm cannot honour.

        Args:
            defaults: A config as its class makes it.
            refused: Name of a setting -> the rule and the way out.

        Raises:
            InvalidOptionsError: With one sentence per setting.
        """
        problems = setting_problems(self, defaults, refused)
        if problems:
            raise InvalidOptionsError(problems)

    def suit_env_to_policy(self) -> None:
        """Give the environment's options that nobody chose the values that suit the policy.

        A frozen config has been through this.
        """
        if not self._is_frozen:
            defaults = self.policy_class.env_defaults(self.model_config)
            self.environment(env_config=suited_env_config(self.env, self.env_config, defaults))

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """The policy that `module_class` names."""
        return RLModuleSpec(module_class=find_policy(self.module_class))

    @property
    def policy_class(self) -> type[RecurrentRLModule]:
        """The policy: that of `rl_module(rl_module_spec=...)`, else that of `module_class`."""
        spec = self._rl_module_spec
        if isinstance(spec, RLModuleSpec) and spec.module_class is not None:
            return spec.module_class
        return find_policy(self.module_class)

    def known_spaces(self) -> dict[str, gym.Space] | None:
        """Return the spaces of an environment as far as they are known without building one.

        Returns:
            `observation_space` and `action_space`; None if only the environment can tell.
        """
        if self.observation_space is not None and self.action_space is not None:
            return {
                "observation_space": self.observation_space,
                "action_space": self.action_space,
            }
        return known_spaces(self.env, self.env_config)

    def observations_read(self) -> set[str] | None:
        """Return the outermost keys of observations that the policy reads; None: all there are."""
        blank = self.policy_class.blank(self.model_config, None)
        return None if blank is None else {keys_of(name)[0] for name in blank.observation_parts}

    def _set_option(self, name: str, value: Any) -> None:
        if name == "prior" and value != INITIAL_PRIOR:
            value = pinned(value)  # what is restored later is held to the same weights
        if name == "model":
            given = {key: pinned(v) if key == "weights" else v for key, v in value.items()}
            self._model_config: dict[str, Any] = {**self._model_config, **given}
        elif name in self._merged_options():
            setattr(self, name, {**getattr(self, name), **value})
        else:
            setattr(self, name, value)

    def _merged_options(self) -> list[str]:
        return [option.name for option in fields(self.OPTIONS) if group_of(option) is not None]
