"""MineStudioPPOConfig: the options of `options/ppo.py` as an RLlib config."""

from __future__ import annotations

from typing import Any

from rllib_minestudio.algorithms.checks import problems_of
from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from rllib_minestudio.algorithms.envs import ENV_NAME
from rllib_minestudio.algorithms.evaluated_config import EvaluatedConfig
from rllib_minestudio.algorithms.learner import MineStudioPPOLearner
from rllib_minestudio.algorithms.options.ppo import PPOOptions, PPOTraining
from rllib_minestudio.algorithms.policy_config import PolicyAlgorithmConfig
from rllib_minestudio.algorithms.rllib_settings import REFUSED
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.option_fields import takes


class MineStudioPPOConfig(PolicyAlgorithmConfig, EvaluatedConfig, PPOOptions):
    """Configuration of MineStudioPPO.

    Its options are the fields of `PPOOptions`, which `training` takes and docs/options.md lists,
    and RLlib's. Defaults are MineStudio's (its online quick start) where it has the option.
    `environment(env_config=...)` takes the options of `MineStudioEnv`; `training(model=...)` those
    of `VPTConfig`.

    Example:
        >>> config = (
        ...     MineStudioPPOConfig()
        ...     .environment(env_config={"obs_size": [64, 64]})
        ...     .training(model={"preset": "nano"}, lr=3e-4)
        ... )
        >>> algorithm = config.build_algo()
        >>> algorithm.train()
    """

    OPTIONS = PPOOptions

    def __init__(self, algo_class: type | None = None) -> None:
        """Set the defaults."""
        if algo_class is None:
            from rllib_minestudio.algorithms.algorithm import MineStudioPPO

            algo_class = MineStudioPPO
        super().__init__(algo_class)
        PPOOptions.__init__(self)

        # RLlib's settings, set to what suits this algorithm.
        self.env = ENV_NAME
        self.env_runner_cls = MineStudioEnvRunner
        self.num_envs_per_env_runner = 8
        self.rollout_fragment_length = 256
        self.sample_timeout_s = 600.0
        self.env_runner_restore_timeout_s = 600.0
        self.max_requests_in_flight_per_env_runner = 2
        self.metrics_num_episodes_for_smoothing = 20
        # Value statistics are not averaged but made from all learners' sums (`distributed.py`).
        self.torch_ddp_kwargs = {"broadcast_buffers": False}
        # Weights are published by `MineStudioPPO` itself, with their version.
        self._dont_auto_sync_env_runner_states = True

    @takes(PPOTraining)
    def training(self, **options: Any) -> MineStudioPPOConfig:
        """Set training options; what is none of ours goes to RLlib's own `training`."""
        self.set_options(options)
        return self

    def validate(self) -> None:
        """Check all options together.

        Raises:
            InvalidOptionsError: With one sentence per problem.
        """
        self.refuse_settings(MineStudioPPOConfig(), REFUSED)
        super().validate()
        problems = problems_of(self)
        if problems:
            raise InvalidOptionsError(problems)
        self.suit_env_to_policy()
        self.install_evaluation()

    def get_default_learner_class(self) -> type:
        """The learner of this algorithm."""
        return MineStudioPPOLearner

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {"zero_init_value_head": self.zero_init_value_head}

    @property
    def cpus_of_other_processes(self) -> float:
        """What env runners and learners in processes of their own ask for."""
        per_learner = 1 if self.num_cpus_per_learner == "auto" else self.num_cpus_per_learner
        return float(
            self.num_learners * per_learner + self.num_env_runners * self.num_cpus_per_env_runner
        )

    @property
    def buffer_capacity(self) -> int:
        """Fragments that the replay buffer holds at most.

        Unless the option says otherwise: those of as many iterations as a fragment may be trained
        in, beside what the environments add meanwhile.
        """
        limits = self.buffer_limits
        if limits.max_fragments is not None:
            return limits.max_fragments
        num_envs = self.num_envs_per_env_runner * max(1, self.num_env_runners)
        usable = self.fragments_per_iteration * (limits.max_staleness + 1)
        return usable + num_envs * (self.fragments_per_sequence + 1)

    @property
    def env_steps_per_iteration(self) -> int:
        """Environment steps trained on in one iteration, reuses counted."""
        return self.fragments_per_iteration * self.rollout_fragment_length
