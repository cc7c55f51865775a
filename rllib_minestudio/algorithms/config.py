"""MineStudioPPOConfig: every option of the algorithm, validated before anything starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ray.rllib.algorithms.algorithm_config import NotProvided

from rllib_minestudio.algorithms.checks import problems_of
from rllib_minestudio.algorithms.env_pool import EnvPoolOptions
from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from rllib_minestudio.algorithms.envs import ENV_NAME
from rllib_minestudio.algorithms.evaluated_config import EvaluatedConfig
from rllib_minestudio.algorithms.learner import MineStudioPPOLearner
from rllib_minestudio.algorithms.learner.behaviour_cloning import (
    DEFAULTS as BEHAVIOUR_CLONING_DEFAULTS,
)
from rllib_minestudio.algorithms.learner.prior import INITIAL_PRIOR
from rllib_minestudio.algorithms.rllib_settings import REFUSED
from rllib_minestudio.algorithms.vpt_config import VPTAlgorithmConfig
from rllib_minestudio.errors import InvalidOptionsError

REPLAY_BUFFER_DEFAULTS = {
    "max_fragments": 4800,
    "max_reuse": 1,
    "max_staleness": 2,
    "fragments_per_chunk": 1,
}


class MineStudioPPOConfig(VPTAlgorithmConfig, EvaluatedConfig):
    """Configuration of MineStudioPPO.

    Defaults are MineStudio's (its online quick start) where it has the option. Besides RLlib's own
    options, see `training` for those of this algorithm. `environment(env_config=...)` takes the
    options of `MineStudioEnv`; `training(model=...)` those of `VPTConfig`.

    Example:
        >>> config = (
        ...     MineStudioPPOConfig()
        ...     .environment(env_config={"obs_size": [64, 64]})
        ...     .training(model={"preset": "nano"}, lr=3e-4)
        ... )
        >>> algorithm = config.build_algo()
        >>> algorithm.train()
    """

    MERGED_OPTIONS = ("replay_buffer", "env_pool", "behaviour_cloning")

    def __init__(self, algo_class: type | None = None) -> None:
        """Set the defaults."""
        if algo_class is None:
            from rllib_minestudio.algorithms.algorithm import MineStudioPPO

            algo_class = MineStudioPPO
        super().__init__(algo_class)

        # What RLlib calls these things, set to what suits this algorithm.
        self.env = ENV_NAME
        self.env_runner_cls = MineStudioEnvRunner
        self.num_envs_per_env_runner = 8
        self.rollout_fragment_length = 256
        self.sample_timeout_s = 600.0
        self.env_runner_restore_timeout_s = 600.0
        self.max_requests_in_flight_per_env_runner = 2
        self.lr = 2.0e-5
        self.gamma = 0.999
        self.grad_clip = 5.0
        self.num_epochs = 1
        self.metrics_num_episodes_for_smoothing = 20
        # Value statistics are not averaged but made from all learners' sums (`distributed.py`).
        self.torch_ddp_kwargs = {"broadcast_buffers": False}
        # Weights are published by `MineStudioPPO` itself, with their version.
        self._dont_auto_sync_env_runner_states = True

        # The policy that the KL term holds the agent to.
        self.prior: str | None = INITIAL_PRIOR
        self.kl_coeff = 0.2
        self.kl_decay = 0.9995
        self.carry_prior_state = True
        self.prior_update_interval = 0

        # The other terms of the loss.
        self.clip_param = 0.2
        self.vf_coeff = 0.5
        self.entropy_coeff = 0.0
        self.log_ratio_clamp = 50.0
        self.lambda_ = 0.95
        self.vf_warmup_iterations = 0
        self.vf_warmup_head_only = False
        self.zero_init_value_head = True

        self.behaviour_cloning: dict[str, Any] = dict(BEHAVIOUR_CLONING_DEFAULTS)

        # Which data are trained on, and in which portions.
        self.env_pool: dict[str, Any] = asdict(EnvPoolOptions())
        self.decorrelation_steps = 0
        self.fragments_per_iteration = 32
        self.fragments_per_minibatch = 1
        self.gradient_accumulation = 10
        self.context_length = 64
        self.replay_buffer: dict[str, int] = dict(REPLAY_BUFFER_DEFAULTS)
        self.off_policy_correction = "decoupled"
        self.importance_weight_truncation = 2.0
        self.reuse_stored_values = False

        # What is put up with.
        self.learner_timeout_s = 1800.0
        self.learner_state_interval = 1
        self.max_restarts_per_hour = 60

        # The optimizer.
        self.lr_annealing_iterations: int | None = None
        self.lr_factors: dict[str, float] = {}
        self.weight_decay = 0.04
        self.adam_eps = 1.0e-8
        self.ema_decay: float | None = None
        self.max_nonfinite_minibatches = 10

    def training(
        self,
        *,
        model: Mapping[str, Any] = NotProvided,
        prior: str | None = NotProvided,
        kl_coeff: float = NotProvided,
        kl_decay: float = NotProvided,
        carry_prior_state: bool = NotProvided,
        prior_update_interval: int = NotProvided,
        clip_param: float = NotProvided,
        vf_coeff: float = NotProvided,
        entropy_coeff: float = NotProvided,
        log_ratio_clamp: float = NotProvided,
        lambda_: float = NotProvided,
        vf_warmup_iterations: int = NotProvided,
        vf_warmup_head_only: bool = NotProvided,
        zero_init_value_head: bool = NotProvided,
        behaviour_cloning: Mapping[str, Any] = NotProvided,
        env_pool: Mapping[str, Any] = NotProvided,
        decorrelation_steps: int = NotProvided,
        fragments_per_iteration: int = NotProvided,
        fragments_per_minibatch: int = NotProvided,
        gradient_accumulation: int = NotProvided,
        context_length: int = NotProvided,
        replay_buffer: Mapping[str, int] = NotProvided,
        off_policy_correction: str = NotProvided,
        importance_weight_truncation: float = NotProvided,
        reuse_stored_values: bool = NotProvided,
        learner_timeout_s: float = NotProvided,
        learner_state_interval: int = NotProvided,
        max_restarts_per_hour: int = NotProvided,
        lr_annealing_iterations: int | None = NotProvided,
        lr_factors: Mapping[str, float] = NotProvided,
        weight_decay: float = NotProvided,
        adam_eps: float = NotProvided,
        ema_decay: float | None = NotProvided,
        max_nonfinite_minibatches: int = NotProvided,
        **kwargs: Any,
    ) -> MineStudioPPOConfig:
        """Set training options; everything RLlib's own `training` takes goes through `kwargs`.

        Args:
            model: Options of the network: `preset` (`1x`, `2x`, `3x`, `nano`), `weights` (a path),
                and any field of `VPTConfig`. Given keys are added to those set before.
            prior: `initial` for the weights training starts from, a path to weights of the same
                size, or None for no KL term.
            kl_coeff: Initial weight of KL(pi || prior), in nats.
            kl_decay: Factor on `kl_coeff` per iteration.
            carry_prior_state: Whether the prior remembers what was before a fragment.
            prior_update_interval: Every so many iterations the prior takes over the policy's
                weights; 0: never.
            clip_param: Half-width of PPO's trust region.
            vf_coeff: Weight of the value loss.
            entropy_coeff: Weight of the entropy bonus.
            log_ratio_clamp: Upper bound of log(pi / proximal policy).
            lambda_: Decay of the GAE trace.
            vf_warmup_iterations: For so many iterations only the value function is trained.
            vf_warmup_head_only: Whether only the value head learns in these iterations. Otherwise
                all weights do, as in MineStudio, and the KL term holds the policy.
            zero_init_value_head: Whether to start from a value head of zeros.
            behaviour_cloning: An auxiliary loss on recorded episodes, the fields of
                `BehaviourCloningOptions`: `recordings` (a folder; without it there is no such
                loss), `coeff`, `fragments_per_minibatch`, ... Given keys are added to the defaults.
            env_pool: How environments are run, the fields of `EnvPoolOptions`: `mode`,
                `inference_batch_size`, `start_timeout_s`, `reset_timeout_s`, `step_timeout_s`,
                `max_restarts_per_hour`, `restart_interval`. Given keys are added to the defaults.
            decorrelation_steps: Before anything is recorded, the policy plays up to so many steps
                in each environment, drawn at random, so that not all episodes begin and end
                together. Give the length of an episode.
            fragments_per_iteration: Fragments trained on in one iteration.
            fragments_per_minibatch: Fragments side by side in one forward pass of a learner;
                where `replay_buffer.fragments_per_chunk` joins several, each row of them is one.
            gradient_accumulation: Minibatches per optimizer step, of all learners together: the
                step is the same however many learners share its work.
            context_length: Steps per chunk of truncated backpropagation through time.
            replay_buffer: `max_fragments`, `max_reuse`, `max_staleness` (in weight versions),
                `fragments_per_chunk` (contiguous fragments of one environment that are sampled
                together). Given keys are added to the defaults.
            off_policy_correction: `decoupled` (importance weights against the behaviour policy),
                `recompute` (MineStudio's: the behaviour policy is forgotten), or `none` (PPO's
                ratio is taken to the behaviour policy itself, however old it is).
            importance_weight_truncation: Upper bound of those weights.
            reuse_stored_values: With `none`, take also the values of stale fragments as recorded:
                then nothing is evaluated before training.
            learner_timeout_s: A remote learner that takes longer over an update hangs, and is
                replaced. (For env runners, see `sample_timeout_s`.)
            learner_state_interval: Iterations after which the state is noted that a lost remote
                learner is rebuilt from: at most so many are lost with it. Noting it costs a copy
                of weights and optimizer (3 GB for VPT 2x).
            max_restarts_per_hour: How often within an hour each part (all env runners, all
                learners, the weights' actor) may die or hang before the run ends with an error.
            lr_annealing_iterations: `lr` falls linearly and is 0 after so many iterations; None: it
                does not. (A schedule in environment steps is given as `lr` itself.)
            lr_factors: Shell pattern on parameter names to factor on `lr`; the first that fits
                counts. To keep parts from learning at all, see the model's option `freeze`.
            weight_decay: Of AdamW.
            adam_eps: Of AdamW.
            ema_decay: Keep a moving average of the weights with this decay per optimizer step
                (such as 0.999), to evaluate and export; None: none. Checkpoints hold it as
                `learner_group/learner/weight_average`.
            max_nonfinite_minibatches: So many minibatches in a row with a NaN or infinite loss
                end the run; fewer are skipped and counted.
            kwargs: `lr`, `gamma`, `grad_clip`, `num_epochs`, ... (`AlgorithmConfig.training`).

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
        self.refuse_settings(MineStudioPPOConfig(), REFUSED)
        super().validate()
        problems = problems_of(self)
        if problems:
            raise InvalidOptionsError(problems)
        self.install_evaluation()

    def get_default_learner_class(self) -> type:
        """The learner of this algorithm."""
        return MineStudioPPOLearner

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {"zero_init_value_head": self.zero_init_value_head}

    @property
    def fragments_per_chunk(self) -> int:
        """Contiguous fragments of one environment that are trained on as one row."""
        return self.replay_buffer["fragments_per_chunk"]

    @property
    def env_steps_per_iteration(self) -> int:
        """Environment steps trained on in one iteration, reuses counted."""
        return self.fragments_per_iteration * self.rollout_fragment_length

    @property
    def chunks_per_fragment(self) -> int:
        """Pieces of truncated backpropagation through time in one fragment."""
        return math.ceil(self.rollout_fragment_length / self.context_length)
