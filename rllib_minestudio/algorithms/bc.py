"""MineStudioBC: RLlib's BC on windows of recorded episodes, with validation and evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ray.rllib.algorithms.bc import BC, BCConfig
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

from rllib_minestudio.algorithms import reporting
from rllib_minestudio.algorithms.demonstration_data import DemonstrationData, split
from rllib_minestudio.algorithms.environments import ENV_NAME
from rllib_minestudio.algorithms.learner.imitation import MineStudioBCLearner
from rllib_minestudio.algorithms.options import CloningOptions, CloningTraining
from rllib_minestudio.algorithms.policy_config import (
    EvaluatedConfig,
    PolicyAlgorithmConfig,
    env_problems,
    model_problems,
    range_problems,
    recorded_parts_problems,
)
from rllib_minestudio.algorithms.rllib_settings import refused_by_cloning
from rllib_minestudio.algorithms.saving import check_if_local, save_with_record
from rllib_minestudio.errors import InvalidOptionsError, RecordingError
from rllib_minestudio.foundation.options import broken_rule, takes


class MineStudioBCConfig(PolicyAlgorithmConfig, EvaluatedConfig, BCConfig, CloningOptions):
    """Configuration of MineStudioBC.

    `offline_data(input_=...)` takes the folder, or folders, with recordings; `training` takes
    `model`, the network's options, and the fields of `CloningOptions`, which docs/reference.md
    describes. The environment is needed only for evaluation (`evaluation_interval`).

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
        if algo_class is None:
            algo_class = MineStudioBC
        super().__init__(algo_class)
        CloningOptions.__init__(self)

        # RLlib's settings, with defaults for this algorithm.
        self.env = ENV_NAME
        self.offline_data_class = DemonstrationData
        self.dataset_num_iters_per_learner = 20
        self.num_envs_per_env_runner = 16
        self.evaluation_duration = 20

    @takes(CloningTraining)
    def training(self, **options: Any) -> MineStudioBCConfig:
        """Set training options; any that are not ours go to RLlib's own `training`."""
        self.set_options(options)
        return self

    def validate(self) -> None:
        """Check all options together.

        Raises:
            InvalidOptionsError: If any are wrong, with one sentence per problem.
        """
        self.refuse_settings(MineStudioBCConfig(), refused_by_cloning())
        self.choose_policy()
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

        For other policies, the environment defines the spaces.
        """
        spaces = self.policy_class.spaces_of(self.model_config) or self.known_spaces()
        if spaces is None:
            raise InvalidOptionsError(
                f"env is {self.env!r}, whose spaces are not known before it is built: set "
                "observation_space and action_space with environment()."
            )
        self.observation_space, self.action_space = spaces.values()

    def get_default_learner_class(self) -> type:
        """Return the learner's class."""
        return MineStudioBCLearner

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {}


# ------------------------------------------------------------------------------- checks of a config


def problems_of(config: MineStudioBCConfig) -> list[str]:
    """Return all problems of a config, one sentence each."""
    problems = [
        *_number_problems(config),
        *env_problems(config.env, config.env_config),
        *_data_problems(config),
        *_memory_problems(config),
        *model_problems(config),
        *_evaluation_problems(config),
    ]
    return problems or _recording_problems(config)


def _number_problems(config: MineStudioBCConfig) -> list[str]:
    problems = range_problems(config)
    if config.dataset_num_iters_per_learner is None:
        problems.append(
            broken_rule("dataset_num_iters_per_learner", None, "must be an integer, at least 1")
        )
    if config.validation_fraction == 1:
        problems.append("validation_fraction is 1: nothing would be left to learn from.")
    if config.num_learners:
        problems.append(
            f"num_learners is {config.num_learners}: cloning has one learner, in the driver; use "
            "0, and num_gpus_per_learner: 1 to put it on a GPU."
        )
    return problems


def _data_problems(config: MineStudioBCConfig) -> list[str]:
    given = config.input_
    folders = given if isinstance(given, list) else [given]
    if given == "sampler" or not folders or not all(isinstance(f, str) and f for f in folders):
        return [
            broken_rule("input_", given, "must be a folder of recordings, or a list of them")
            + " `rllib record` makes some."
        ]
    return [
        f"input_ is {given!r}, but there is no folder {folder!r}; `rllib record` makes "
        "recordings, and --set input_=FOLDER says where they are."
        for folder in folders
        if not Path(folder).is_dir()
    ]


def _recording_problems(config: MineStudioBCConfig) -> list[str]:
    """Return why the recordings cannot be cloned from, before Ray reads them."""
    if config.in_evaluation:
        return []
    try:
        training, validation, _ = split(config.input_, config.validation_fraction, config.seed or 0)
    except RecordingError as error:
        return [f"input_ is {config.input_!r}: {error}"]
    episodes = [*training, *validation]
    return [f"input_: {problem}" for problem in recorded_parts_problems(config, episodes)]


def _memory_problems(config: MineStudioBCConfig) -> list[str]:
    if not config.carry_memory:
        return []
    problems = []
    if config.burn_in:
        problems.append(
            f"burn_in is {config.burn_in}: with carry_memory, each window starts from the memory "
            "that the one before it left, and need not rebuild it; leave burn_in out."
        )
    if config.shuffle_among != CloningOptions().shuffle_among:
        problems.append(
            f"shuffle_among is {config.shuffle_among}: with carry_memory, the windows of an "
            "episode stay in order; leave shuffle_among out."
        )
    return problems


def _evaluation_problems(config: MineStudioBCConfig) -> list[str]:
    if not config.evaluation_interval:
        return []
    problems = []
    if config.evaluation_num_env_runners:
        problems.append(
            f"evaluation_num_env_runners is {config.evaluation_num_env_runners}: clones are "
            "evaluated in the driver, in num_envs_per_env_runner environments side by side; use 0."
        )
    return problems


# ------------------------------------------------------------------------------------ the algorithm


class MineStudioBC(BC):
    """Behaviour cloning of a `RecurrentRLModule` from recordings."""

    config: MineStudioBCConfig
    offline_data: DemonstrationData

    @classmethod
    def get_default_config(cls) -> MineStudioBCConfig:
        """Return the default config."""
        return MineStudioBCConfig(algo_class=cls)

    def setup(self, config: MineStudioBCConfig) -> None:
        """Build the learner (RLlib), and report progress."""
        reporting.publish_as_trial(self._storage)
        reporting.stage("reading demonstrations, starting the learner")
        super().setup(config)

    @classmethod
    def _should_create_evaluation_env_runners(cls, eval_config: Any) -> bool:
        """Return False: clones are evaluated in the driver, see `evaluate`."""
        return False

    def __repr__(self) -> str:
        # Ray shows this with the error if the config was refused, which leaves no config.
        return super().__repr__() if self.config is not None else type(self).__name__

    def get_module(self, module_id: str = DEFAULT_MODULE_ID) -> Any:
        """Return the clone, which is the learner's module; None for any other id."""
        return self.learner_group._learner.policy if module_id == DEFAULT_MODULE_ID else None

    def step(self) -> dict[str, Any]:
        """Run one iteration.

        Returns:
            RLlib's result. RLlib calls `evaluate` only after it has built the training part, which
            would therefore hold the previous evaluation; this replaces it with the current one.
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
        """Train on `dataset_num_iters_per_learner` batches; RLlib collects the metrics."""
        reporting.stage("learning")
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
        """Measure the loss on the held-out episodes."""
        learner = self.learner_group._learner
        held_out = self.offline_data.validation(self.config.windows_per_batch)
        for name, value in learner.validate(held_out).items():
            self.metrics.log_value((LEARNER_RESULTS, DEFAULT_MODULE_ID, name), value, window=1)

    def cleanup(self) -> None:
        """Stop everything, reading included."""
        if self.offline_data is not None:
            self.offline_data.close()
        super().cleanup()

    def evaluate(self, parallel_train_future: Any = None) -> dict[str, Any]:
        """Play `evaluation_duration` episodes, the same each time; works at any time.

        Returns:
            The metrics of `rllib_minestudio.evaluation.during_training.reported`.

        Raises:
            InvalidOptionsError: If the config cannot be evaluated, with one sentence per problem.
        """
        if self.config.custom_evaluation_function is None:
            config = self.config.copy(copy_frozen=False)
            config.install_evaluation(always=True)
            config.freeze()
            self.config = config
        self._call_back("on_evaluate_start")
        results, _, _ = self.config.custom_evaluation_function(self, None)
        for name, value in results.items():
            # Under training's names too, so that plots and stop criteria work for clones.
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
        make_callback(
            name,
            callbacks_objects=self.callbacks,
            callbacks_functions=getattr(self.config, f"callbacks_{name}"),
            kwargs={"algorithm": self, "metrics_logger": self.metrics, **arguments},
        )

    def save_to_path(self, path: Any = None, **kwargs: Any) -> str:
        """Save a checkpoint with its record; see `save_with_record`."""
        return save_with_record(self, path, **kwargs)

    def restore_from_path(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Restore a checkpoint, without RLlib's sync of env runners: there may be none.

        Demonstrations are shuffled in a different order than at the start of the run; the held-out
        episodes stay the same.
        """
        check_if_local(path, self.config, kwargs.get("filesystem"))
        Checkpointable.restore_from_path(self, path, *args, **kwargs)
        self.offline_data.begin_anew(self.iteration)
