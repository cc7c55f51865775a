"""MineStudioBCConfig: the options of cloning, validated before anything starts."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.bc import BCConfig

from rllib_minestudio.algorithms.cloning.cloning_checks import problems_of
from rllib_minestudio.algorithms.cloning.data import DemonstrationData
from rllib_minestudio.algorithms.cloning.learner import MineStudioBCLearner
from rllib_minestudio.algorithms.envs import ENV_NAME
from rllib_minestudio.algorithms.evaluated_config import EvaluatedConfig
from rllib_minestudio.algorithms.options.cloning import CloningOptions, CloningTraining
from rllib_minestudio.algorithms.policy_config import PolicyAlgorithmConfig
from rllib_minestudio.algorithms.rllib_settings import refused_by_cloning
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_fields import takes


class MineStudioBCConfig(PolicyAlgorithmConfig, EvaluatedConfig, BCConfig, CloningOptions):
    """Configuration of MineStudioBC.

    `offline_data(input_=...)` names the folder, or folders, with recordings; `training(model=...)`
    the network, besides the fields of `CloningOptions`, which docs/options.md lists. The
    environment is needed only to evaluate (`evaluation_interval`).

    Example:
        >>> config = (
        ...     MineStudioBCConfig()
        ...     .offline_data(input_="demos/cow")
        ...     .training(model={"preset": "nano"}, lr=1e-3)
        ... )
        >>> algorithm = config.build_algo()
        >>> algorithm.train()
    """

    OPTIONS = CloningOptions

    def __init__(self, algo_class: type | None = None) -> None:
        """Set the defaults."""
        if algo_class is None:
            from rllib_minestudio.algorithms.cloning.algorithm import MineStudioBC

            algo_class = MineStudioBC
        super().__init__(algo_class)
        CloningOptions.__init__(self)

        # RLlib's settings, set to what suits this algorithm.
        self.env = ENV_NAME
        self.offline_data_class = DemonstrationData
        self.dataset_num_iters_per_learner = 20
        self.num_envs_per_env_runner = 16
        self.evaluation_duration = 20

    @takes(CloningTraining)
    def training(self, **options: Any) -> MineStudioBCConfig:
        """Set training options; what is none of ours goes to RLlib's own `training`."""
        self.set_options(options)
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
        self.suit_env_to_policy()
        if not self._is_frozen:
            self._set_spaces()
        super().validate()
        self.install_evaluation()

    def _set_spaces(self) -> None:
        """Take VPT's spaces from the network, so that cloning it needs no environment.

        Other policies read whatever the environment shows.
        """
        spaces = self.policy_class.spaces_of(self.model_config) or self.known_spaces()
        if spaces is None:
            raise InvalidOptionsError(
                f"env is {self.env!r}, which does not tell its spaces before it is built: set "
                "observation_space and action_space with environment()."
            )
        self.observation_space, self.action_space = spaces.values()

    def get_default_learner_class(self) -> type:
        """The learner of this algorithm."""
        return MineStudioBCLearner

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {}
