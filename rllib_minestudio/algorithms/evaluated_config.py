"""The part of a config that says how the policy is evaluated while it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_minestudio.algorithms import evaluation_hook


class EvaluatedConfig(AlgorithmConfig):
    """Evaluates on our own env runners: whole episodes, a fixed set of them.

    RLlib's own sampling counts the episodes that end first, which are the short ones.
    """

    def __init__(self, algo_class: type | None = None) -> None:
        """Set the defaults."""
        super().__init__(algo_class)
        self.evaluation_options: dict[str, Any] = {}

    def evaluation(
        self, *, evaluation_options: Mapping[str, Any] = NotProvided, **kwargs: Any
    ) -> EvaluatedConfig:
        """Set how the policy is evaluated while it is trained.

        Args:
            evaluation_options: What RLlib has no option for: `filter`, `record`, `only`, `seed`,
                `max_steps`, `max_attempts` (`evaluation.evaluation_options.EvaluationOptions`).
            kwargs: `evaluation_interval`, `evaluation_duration`, `evaluation_num_env_runners`,
                `evaluation_parallel_to_training`, ... (`AlgorithmConfig.evaluation`).

        Returns:
            This config.
        """
        super().evaluation(**kwargs)
        if evaluation_options is not NotProvided:
            self.evaluation_options = dict(evaluation_options)
        return self

    def install_evaluation(self, *, always: bool = False) -> None:
        """Prepare for evaluation if it was asked for.

        Args:
            always: Whether to do so in any case.

        Raises:
            InvalidOptionsError: With one sentence per problem.
        """
        asked_for = self.evaluation_interval or self.evaluation_num_env_runners
        if not self.in_evaluation and (always or asked_for):
            evaluation_hook.install_evaluation(self)


def prepare_to_evaluate(algorithm: Any) -> None:
    """Give an algorithm env runners to evaluate with, if it has none yet.

    Raises:
        InvalidOptionsError: Its config cannot be evaluated; with one sentence per problem.
    """
    if algorithm.eval_env_runner_group is not None:
        return
    config = algorithm.config.copy(copy_frozen=False)
    config.install_evaluation(always=True)
    config.freeze()
    evaluation_config = config.get_evaluation_config_object()
    evaluation_config.validate()
    evaluation_config.freeze()
    algorithm.config, algorithm.evaluation_config = config, evaluation_config
    algorithm.eval_env_runner_group = EnvRunnerGroup(
        config=evaluation_config, local_env_runner=True, logdir=algorithm.logdir
    )
