"""What the configs of all algorithms that train VPT have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.models import MODEL_DEFAULTS

from rllib_minestudio.models.vpt_rl_module import VPTRLModule

if TYPE_CHECKING:
    from typing_extensions import Self


class VPTAlgorithmConfig(AlgorithmConfig):
    """A config whose network is VPT, and whose `training` has options of its own.

    The keyword arguments of a subclass's `training` are attributes of the config. `model` and the
    `MERGED_OPTIONS` are mappings: given keys are added to those set before.
    """

    MERGED_OPTIONS: ClassVar[tuple[str, ...]] = ()

    def update_from_dict(self, config_dict: Mapping[str, Any]) -> Self:
        """Set options from a mapping, as YAML files and Tune do."""
        rest = dict(config_dict)
        for name in ("model", *self.MERGED_OPTIONS):
            value = rest.pop(name, NotProvided)
            # `to_dict` also lists the defaults of RLlib's old API stack under `model`.
            if value is not NotProvided and not value.keys() >= MODEL_DEFAULTS.keys():
                self._set_option(name, value)
        super().update_from_dict(rest)
        return self

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """VPT."""
        return RLModuleSpec(module_class=VPTRLModule)

    def _set_given(self, arguments: Mapping[str, Any]) -> None:
        """Set what `training` was given; `arguments` are its `locals()`, taken on entry."""
        for name, value in arguments.items():
            if name not in ("self", "kwargs", "__class__") and value is not NotProvided:
                self._set_option(name, value)

    def _set_option(self, name: str, value: Any) -> None:
        if name == "model":
            self._model_config: dict[str, Any] = {**self._model_config, **value}
        elif name in self.MERGED_OPTIONS:
            setattr(self, name, {**getattr(self, name), **value})
        else:
            setattr(self, name, value)
