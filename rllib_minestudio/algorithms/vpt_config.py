"""What the configs of all algorithms that train VPT have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.models import MODEL_DEFAULTS

from rllib_minestudio.algorithms.options.former import FORMER_OPTIONS, former_option_problems
from rllib_minestudio.algorithms.setting_checks import setting_problems, unknown_key_problems
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.vpt_rl_module import VPTRLModule
from rllib_minestudio.option_fields import group_of

if TYPE_CHECKING:
    from typing_extensions import Self


class VPTAlgorithmConfig(AlgorithmConfig):
    """A config whose network is VPT, and which has options of its own.

    Attributes:
        OPTIONS: The dataclass that declares them; each is an attribute of the config. Where the
            value is a mapping, keys that are given are added to those set before; so are the
            options of `model`.
    """

    OPTIONS: ClassVar[type]

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Set what `training` was given: options of ours, and arguments of RLlib's `training`.

        Raises:
            InvalidOptionsError: A former option is among them.
        """
        problems = former_option_problems(options)
        if problems:
            raise InvalidOptionsError(problems)
        given = {name: value for name, value in options.items() if value is not NotProvided}
        own = {"model", *(option.name for option in fields(self.OPTIONS))}
        super().training(**{name: given[name] for name in given.keys() - own})
        for name in own & given.keys():
            self._set_option(name, given[name])

    def update_from_dict(self, config_dict: Mapping[str, Any]) -> Self:
        """Set options from a mapping, as YAML files and Tune do.

        Raises:
            InvalidOptionsError: There is no option of that name; RLlib would take it in silence.
                A former option passes at the value that asks for what is now always done: who
                listed all options of an earlier version did not choose it.
        """
        # Tune notes its own facts under names such as __trial_info__.
        rest = {key: value for key, value in config_dict.items() if not key.startswith("__")}
        problems = former_option_problems(rest, listed=True)
        rest = {key: value for key, value in rest.items() if key not in FORMER_OPTIONS}
        problems += unknown_key_problems(rest, self)
        if problems:
            raise InvalidOptionsError(problems)
        if "learner_class" in rest:
            self.training(learner_class=rest.pop("learner_class"))
        for name in ("model", *self._merged_options()):
            value = rest.pop(name, NotProvided)
            # `to_dict` also lists the defaults of RLlib's old API stack under `model`.
            if value is not NotProvided and not value.keys() >= MODEL_DEFAULTS.keys():
                self._set_option(name, value)
        super().update_from_dict(rest)
        return self

    def refuse_settings(self, defaults: VPTAlgorithmConfig, refused: Mapping[str, str]) -> None:
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

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """VPT."""
        return RLModuleSpec(module_class=VPTRLModule)

    def _set_option(self, name: str, value: Any) -> None:
        if name == "model":
            self._model_config: dict[str, Any] = {**self._model_config, **value}
        elif name in self._merged_options():
            setattr(self, name, {**getattr(self, name), **value})
        else:
            setattr(self, name, value)

    def _merged_options(self) -> list[str]:
        return [option.name for option in fields(self.OPTIONS) if group_of(option) is not None]
