"""The part of a config that says how the policy is evaluated while it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided

EVALUATOR = "rllib_minestudio.evaluation.training"
"""The module whose `install` makes a config evaluate while it trains. It is loaded by its name,
and only when asked for: evaluation is built on algorithms, which otherwise know nothing of it."""


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
                `max_steps`, `max_attempts` (`evaluation.options.EvaluationOptions`).
            kwargs: `evaluation_interval`, `evaluation_duration`, `evaluation_num_env_runners`,
                `evaluation_parallel_to_training`, ... (`AlgorithmConfig.evaluation`).

        Returns:
            This config.
        """
        super().evaluation(**kwargs)
        if evaluation_options is not NotProvided:
            self.evaluation_options = dict(evaluation_options)
        return self

    def install_evaluation(self) -> None:
        """Prepare for evaluation if it was asked for.

        Raises:
            InvalidOptionsError: With one sentence per problem.
        """
        if not self.in_evaluation and (self.evaluation_interval or self.evaluation_num_env_runners):
            import_module(EVALUATOR).install(self)
