"""What is asked of an algorithm between iterations: its policy now, and how well that plays."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import DEFAULT_MODULE_ID

from rllib_minestudio.algorithms import activity
from rllib_minestudio.algorithms.evaluated_config import prepare_to_evaluate
from rllib_minestudio.algorithms.training_loop.experience import Experience


class PolicyAccess(Algorithm):
    """RLlib's own versions show the weights that a run began with, where remote runners play.

    Attributes:
        experience: Knows what was published; a subclass makes it in `setup`.
    """

    experience: Experience

    def __repr__(self) -> str:
        """Name the class at least where the config was refused; Ray shows this beside the error."""
        return super().__repr__() if self.config is not None else type(self).__name__

    @property
    def env_runner(self) -> Any:
        """The env runner in this process, with the weights published last; None without one.

        Where remote runners play, it has them loaded when it is asked for.
        """
        runner = super().env_runner
        if runner is not None and hasattr(self, "experience"):
            self.experience.bring_up_to_date(runner)
        return runner

    def get_module(self, module_id: str = DEFAULT_MODULE_ID) -> Any:
        """Return the module that env runners act with, with the weights published last.

        In a warmup of the value function nothing is published, and the learner is ahead of it.

        Args:
            module_id: `default_policy`; there is no other.

        Returns:
            The module, or None for another id.
        """
        if module_id != DEFAULT_MODULE_ID:
            return None
        if (runner := self.env_runner) is not None:
            return runner.module
        module = self.config.get_rl_module_spec(spaces=self.spaces, inference_only=True).build()
        module.set_state(self.experience.published())
        return module

    def evaluate(self, parallel_train_future: Any = None) -> dict[str, Any]:
        """Play `evaluation_duration` episodes with the learner's weights, at any time.

        Without `evaluation_interval` the env runners for it are built in the first call, and kept.

        Returns:
            RLlib's result: `env_runners` has what `evaluation.training.reported` names.
        """
        activity.stage("evaluating")
        prepare_to_evaluate(self)
        return super().evaluate(parallel_train_future)
