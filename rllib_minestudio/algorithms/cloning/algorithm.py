"""MineStudioBC: RLlib's BC on windows of recorded episodes, validated and played in between."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.bc import BC
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EVALUATION_RESULTS,
    LEARNER_RESULTS,
    LEARNER_UPDATE_TIMER,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES_LIFETIME,
    TIMERS,
)

from rllib_minestudio.algorithms import activity
from rllib_minestudio.algorithms.checkpoint_record import check_if_local, save_with_record
from rllib_minestudio.algorithms.cloning.config import MineStudioBCConfig
from rllib_minestudio.algorithms.cloning.data import DemonstrationData


class MineStudioBC(BC):
    """Behaviour cloning of a `RecurrentRLModule` from recordings."""

    config: MineStudioBCConfig
    offline_data: DemonstrationData

    @classmethod
    def get_default_config(cls) -> MineStudioBCConfig:
        """The defaults."""
        return MineStudioBCConfig(algo_class=cls)

    def setup(self, config: MineStudioBCConfig) -> None:
        """Build the learner (RLlib), and say so to those who watch."""
        activity.publish_as_trial(self._storage)
        activity.stage("reading demonstrations, starting the learner")
        super().setup(config)

    @classmethod
    def _should_create_evaluation_env_runners(cls, eval_config: Any) -> bool:
        """Never: clones are played in the driver, see `evaluate`."""
        return False

    def __repr__(self) -> str:
        """Name the class at least where the config was refused; Ray shows this beside the error."""
        return super().__repr__() if self.config is not None else type(self).__name__

    def get_module(self, module_id: str = DEFAULT_MODULE_ID) -> Any:
        """Return the clone, which is the learner's module; None for another id."""
        return self.learner_group._learner.policy if module_id == DEFAULT_MODULE_ID else None

    def step(self) -> dict[str, Any]:
        """One iteration; the result of one that evaluates holds that evaluation.

        Returns:
            RLlib's result. `evaluate` is called when the training's part of it is made already,
            which would show what was evaluated the time before.
        """
        result: dict[str, Any] = super().step()
        evaluated = result.get(EVALUATION_RESULTS, {}).get(ENV_RUNNER_RESULTS)
        if evaluated:
            lifetime = self.metrics.peek((ENV_RUNNER_RESULTS, NUM_EPISODES_LIFETIME))
            result.setdefault(ENV_RUNNER_RESULTS, {}).update(
                evaluated, **{NUM_EPISODES_LIFETIME: lifetime}
            )
        return result

    def training_step(self) -> None:
        """`dataset_num_iters_per_learner` batches; RLlib collects the metrics."""
        activity.stage("learning")
        config, metrics = self.config, self.metrics
        batches = self.offline_data.sample(config.windows_per_batch)
        steps = (
            config.dataset_num_iters_per_learner * config.windows_per_batch * config.window_length
        )
        with metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
            results = self.learner_group.update(
                training_data=TrainingData(data_iterators=[batches]),
                timesteps={
                    NUM_ENV_STEPS_SAMPLED_LIFETIME: metrics.peek(
                        NUM_ENV_STEPS_SAMPLED_LIFETIME, default=0
                    )
                },
                num_iters=config.dataset_num_iters_per_learner,
            )
        metrics.aggregate(results, key=LEARNER_RESULTS)
        metrics.log_value(NUM_ENV_STEPS_SAMPLED_LIFETIME, steps, reduce="lifetime_sum")
        if (self.iteration + 1) % config.validation_interval == 0:
            self._validate_clone()

    def _validate_clone(self) -> None:
        """Measure the loss on the episodes that were held out."""
        learner = self.learner_group._learner
        held_out = self.offline_data.validation(self.config.windows_per_batch)
        for name, value in learner.validate(held_out).items():
            self.metrics.log_value((LEARNER_RESULTS, DEFAULT_MODULE_ID, name), value, window=1)

    def evaluate(self, parallel_train_future: Any = None) -> dict[str, Any]:
        """Play `evaluation_duration` episodes, the same each time; may be called at any time.

        Returns:
            What `rllib_minestudio.evaluation.training.reported` names.

        Raises:
            InvalidOptionsError: The config cannot be evaluated; with one sentence per problem.
        """
        if self.config.custom_evaluation_function is None:
            config = self.config.copy(copy_frozen=False)
            config.install_evaluation(always=True)
            config.freeze()
            self.config = config
        self._call_back("on_evaluate_start")
        results, _, _ = self.config.custom_evaluation_function(self, None)
        for name, value in results.items():
            # Under the training's names, too: what plots and stops by them holds for clones.
            self.metrics.log_value((ENV_RUNNER_RESULTS, name), value, window=1)
        self.metrics.log_value(
            (ENV_RUNNER_RESULTS, NUM_EPISODES_LIFETIME),
            results["num_episodes"],
            reduce="lifetime_sum",
        )
        evaluated = {ENV_RUNNER_RESULTS: results}
        self._call_back("on_evaluate_end", evaluation_metrics=evaluated)
        return evaluated

    def _call_back(self, name: str, **arguments: Any) -> None:
        """Call RLlib's callbacks of a name."""
        make_callback(
            name,
            callbacks_objects=self.callbacks,
            callbacks_functions=getattr(self.config, f"callbacks_{name}"),
            kwargs={"algorithm": self, "metrics_logger": self.metrics, **arguments},
        )

    def save_to_path(self, path: Any = None, **kwargs: Any) -> str:
        """Save with a record, whole or not at all; see `save_with_record`."""
        return save_with_record(self, path, **kwargs)

    def restore_from_path(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Restore; without RLlib's sync of env runners, which it also asks of none.

        Demonstrations are shuffled in another order than the run began with; those held out stay.
        """
        check_if_local(path, kwargs.get("filesystem"))
        Checkpointable.restore_from_path(self, path, *args, **kwargs)
        self.offline_data.begin_anew(self.iteration)
