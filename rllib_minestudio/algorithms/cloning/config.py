"""MineStudioBCConfig: the options of cloning, validated before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.algorithms.algorithm_config import NotProvided
from ray.rllib.algorithms.bc import BCConfig

from rllib_minestudio.algorithms.cloning.cloning_checks import problems_of
from rllib_minestudio.algorithms.cloning.data import DemonstrationData
from rllib_minestudio.algorithms.cloning.learner import MineStudioBCLearner
from rllib_minestudio.algorithms.envs import ENV_NAME
from rllib_minestudio.algorithms.evaluated_config import EvaluatedConfig
from rllib_minestudio.algorithms.rllib_settings import refused_by_cloning
from rllib_minestudio.algorithms.vpt_config import VPTAlgorithmConfig
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.vpt.config import VPTConfig
from rllib_minestudio.models.vpt.heads import NUM_BUTTONS, NUM_CAMERA
from rllib_minestudio.models.vpt.weight_loading import config_from_options
from rllib_minestudio.models.vpt_rl_module import MODULE_OPTIONS


class MineStudioBCConfig(VPTAlgorithmConfig, EvaluatedConfig, BCConfig):
    """Configuration of MineStudioBC.

    `offline_data(input_=...)` names the folder, or folders, with recordings; `training(model=...)`
    the network. The environment is needed only to evaluate (`evaluation_interval`).

    Example:
        >>> config = (
        ...     MineStudioBCConfig()
        ...     .offline_data(input_="demos/cow")
        ...     .training(model={"preset": "nano"}, lr=1e-3)
        ... )
        >>> algorithm = config.build_algo()
        >>> algorithm.train()
    """

    def __init__(self, algo_class: type | None = None) -> None:
        """Set the defaults."""
        if algo_class is None:
            from rllib_minestudio.algorithms.cloning.algorithm import MineStudioBC

            algo_class = MineStudioBC
        super().__init__(algo_class)

        # What RLlib calls these things, set to what suits this algorithm.
        self.env = ENV_NAME
        self.offline_data_class = DemonstrationData
        self.dataset_num_iters_per_learner = 20
        self.num_envs_per_env_runner = 16
        self.evaluation_duration = 20
        self.lr = 1.0e-3
        self.grad_clip = 5.0

        # Which steps are imitated, and in which portions.
        self.window_length = 128
        self.burn_in: int | None = None
        self.context_length = 64
        self.windows_per_batch = 8
        self.shuffle_among = 64
        self.num_readers = 1
        self.validation_fraction = 0.1
        self.validation_interval = 10

        # The optimizer.
        self.lr_factors: dict[str, float] = {}
        self.weight_decay = 0.01
        self.adam_eps = 1.0e-8
        self.max_nonfinite_minibatches = 10

    def training(
        self,
        *,
        model: Mapping[str, Any] = NotProvided,
        window_length: int = NotProvided,
        burn_in: int | None = NotProvided,
        context_length: int = NotProvided,
        windows_per_batch: int = NotProvided,
        shuffle_among: int = NotProvided,
        num_readers: int = NotProvided,
        validation_fraction: float = NotProvided,
        validation_interval: int = NotProvided,
        lr_factors: Mapping[str, float] = NotProvided,
        weight_decay: float = NotProvided,
        adam_eps: float = NotProvided,
        max_nonfinite_minibatches: int = NotProvided,
        **kwargs: Any,
    ) -> MineStudioBCConfig:
        """Set training options; everything RLlib's own `training` takes goes through `kwargs`.

        Args:
            model: Options of the network, as `MineStudioPPOConfig.training` takes them.
            window_length: Steps of an episode that are imitated together.
            burn_in: Frames before a window that rebuild the memory; None: the memory's length.
            context_length: Steps per chunk of truncated backpropagation through time; the memory
                is carried from chunk to chunk.
            windows_per_batch: Windows per optimizer step.
            shuffle_among: From how many decoded windows each is drawn. They are in memory.
            num_readers: Tasks of Ray Data that decode episodes at the same time.
            validation_fraction: Share of the episodes that is held out.
            validation_interval: Iterations from one validation loss to the next.
            lr_factors: Shell pattern on parameter names to factor on `lr`.
            weight_decay: Of AdamW.
            adam_eps: Of AdamW.
            max_nonfinite_minibatches: So many batches in a row with a NaN or infinite loss end the
                run; fewer are skipped.
            kwargs: `lr`, `grad_clip`, ... (`BCConfig.training`).

        Returns:
            This config.
        """
        given = locals().copy()
        super().training(**kwargs)
        self._set_given(given)
        return self

    def validate(self) -> None:
        """Check all options together.

        Raises:
            InvalidOptionsError: With one sentence per problem.
        """
        self.refuse_settings(MineStudioBCConfig(), refused_by_cloning())
        problems = problems_of(self)
        if problems:
            raise InvalidOptionsError(problems)
        if not self._is_frozen:
            self._set_spaces()
        super().validate()
        self.install_evaluation()

    def _set_spaces(self) -> None:
        """Take the spaces from the network, so that cloning needs no environment."""
        shape = self.network_config.img_shape
        self.observation_space = gym.spaces.Dict(image=gym.spaces.Box(0, 255, shape, np.uint8))
        self.action_space = gym.spaces.Dict(
            buttons=gym.spaces.MultiDiscrete([NUM_BUTTONS]),
            camera=gym.spaces.MultiDiscrete([NUM_CAMERA]),
        )

    @property
    def network_config(self) -> VPTConfig:
        """The network's sizes."""
        return config_from_options(self.model_config, MODULE_OPTIONS)

    def get_default_learner_class(self) -> type:
        """The learner of this algorithm."""
        return MineStudioBCLearner

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {}
