"""What the configs of all algorithms that train a policy with memory have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.models import MODEL_DEFAULTS

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms import hooks
from rllib_minestudio.algorithms.environments import (
    default_policy,
    is_minestudio,
    known_adapter,
    known_spaces,
    looks_of_env,
    resolve_env,
    suited_env_config,
    tell_default_policy,
    tell_other_looks,
)
from rllib_minestudio.algorithms.options import INITIAL_PRIOR, SharedOptions
from rllib_minestudio.algorithms.rllib_settings import (
    foreign_model_problems,
    setting_problems,
    unknown_key_problems,
)
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.checkpoints.lookup import pinned
from rllib_minestudio.demonstrations import WindowOptions, open_episode
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.errors import (
    CheckpointMismatchError,
    InvalidOptionsError,
    MineStudioError,
)
from rllib_minestudio.foundation.observations import IMAGE, ObservationPart, keys_of, parts_of
from rllib_minestudio.foundation.options import (
    EVER,
    MANY,
    Bounds,
    broken_rule,
    group_of,
    option_problems,
    shown,
    types_of,
    value_problems,
)
from rllib_minestudio.models.fine_tuning import WeightAverage, freeze, parameter_groups
from rllib_minestudio.models.policy import RecurrentRLModule
from rllib_minestudio.models.policy_registry import AUTO, VPT, class_problems, find_policy
from rllib_minestudio.recordings.layout import TOKEN_COLUMNS

if TYPE_CHECKING:
    from typing_extensions import Self


# ------ how demonstrations are cut into windows for a policy: the parts it reads, at its image size


def window_options(
    parts: Mapping[str, ObservationPart], length: int, burn_in: int, max_null_run: int | None = None
) -> WindowOptions:
    """Return how recorded episodes are cut into windows for a policy.

    Args:
        parts: The observation parts it reads (`RecurrentRLModule.observation_parts`).
        length: Steps to imitate.
        burn_in: Frames before them.
        max_null_run: How many consecutive null actions are kept; None: all.
    """
    size = None
    if IMAGE in parts:
        height, width, _ = parts[IMAGE].shape
        size = (width, height)
    names = tuple(name for name in parts if name != IMAGE)
    return WindowOptions(length, burn_in, size, names, max_null_run)


def unreadable_parts(
    parts: Mapping[str, ObservationPart], recordings: Iterable[str | Path]
) -> list[str]:
    """Check that recordings have the observation parts that a policy reads.

    Args:
        parts: The observation parts it reads.
        recordings: Paths of recorded episodes.

    Returns:
        One sentence about the first mismatch; empty if there is none.

    Raises:
        RecordingError: If one of the paths is not a recording.
    """
    wanted = {name: part for name, part in parts.items() if name != IMAGE}
    for path in recordings if wanted else ():
        recorded = open_episode(path).meta.get("observations") or {}
        for name, part in wanted.items():
            told = recorded.get(name)
            promised = f"{part.dtype} {part.shape}"
            has = told and f"{told['dtype']} {tuple(told['shape'])}"
            if has != promised:
                return [
                    f"the policy reads {name!r}, {promised}, but the recording "
                    f"{str(path)!r} has {'it as ' + has if has else 'none'}: record it in the "
                    "environment that the policy plays in, or leave out the callback that adds "
                    f"{name!r}."
                ]
    return []


# ---------------- what the configs of all algorithms that train a policy with memory have in common


class PolicyAlgorithmConfig(AlgorithmConfig):
    """A config whose module is a `RecurrentRLModule`, with options of its own.

    Attributes:
        OPTIONS: The dataclass that declares the options; each is an attribute of the config. If an
            option is a mapping, the given keys are added to those set before; so are those of
            `model`.
    """

    OPTIONS: ClassVar[type]
    module_class: str

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Set the arguments of `training`: our own options, and those of RLlib's `training`."""
        given = {name: value for name, value in options.items() if value is not NotProvided}
        own = {"model", *(option.name for option in fields(self.OPTIONS))}
        super().training(**{name: given[name] for name in given.keys() - own})
        for name in own & given.keys():
            self._set_option(name, given[name])

    @classmethod
    def from_example(cls, name: str) -> Self:
        """Return the config of an example, to be changed and built like any other.

        It has everything below the example's `config` and `evaluation`. When training stops and
        what is saved is up to the caller's loop, or to Tune.

        Args:
            name: What `rllib train file` accepts: the name of an example in the package, such as
                `cow`, or the path of an experiment file.

        Raises:
            ExperimentFileError: There is no such file, or it cannot be read.
            InvalidOptionsError: Something in it is wrong, it is an experiment of another algorithm,
                or it searches over options, of which a config has one value each.
        """
        config: Self = hooks.config_from_example(name, cls)
        return config

    def update_from_dict(self, config_dict: Mapping[str, Any]) -> Self:
        """Set options from a mapping, as YAML files and Tune do.

        Raises:
            InvalidOptionsError: If there is no option of that name; RLlib would accept it silently.
        """
        # Tune adds entries of its own, such as __trial_info__.
        rest = {key: value for key, value in config_dict.items() if not key.startswith("__")}
        problems = unknown_key_problems(rest, self)
        if problems:
            raise InvalidOptionsError(problems)
        if "learner_class" in rest:
            self.training(learner_class=rest.pop("learner_class"))
        for name in ("model", *self._merged_options()):
            value = rest.pop(name, NotProvided)
            if value is not NotProvided and not isinstance(value, Mapping):
                rule = "must be a mapping; leave it out for its defaults"
                raise InvalidOptionsError(broken_rule(name, value, rule))
            # `to_dict` also lists the defaults of RLlib's old API stack under `model`.
            if value is not NotProvided and not value.keys() >= MODEL_DEFAULTS.keys():
                self._set_option(name, value)
        super().update_from_dict(rest)
        return self

    def refuse_settings(self, defaults: PolicyAlgorithmConfig, refused: Mapping[str, str]) -> None:
        """Refuse settings of RLlib that this algorithm cannot honour; see `setting_problems`.

        Raises:
            InvalidOptionsError: If any are set, with one sentence per setting.
        """
        problems = setting_problems(self, defaults, refused)
        if problems:
            raise InvalidOptionsError(problems)

    def suit_env_to_policy(self) -> None:
        """Set options of the environment that the user left open to the policy's defaults."""
        # A frozen config already has them.
        if not self._is_frozen:
            defaults = self.policy_class.env_defaults(self.model_config)
            self.environment(env_config=suited_env_config(self.env, self.env_config, defaults))

    def choose_policy(self) -> None:
        """Replace `module_class: auto` by the policy for this environment.

        Env runners and learners in other processes get the name, as do checkpoints.
        """
        if self.module_class == AUTO and self._policy_of_spec is None and not self._is_frozen:
            self.module_class = default_policy(self.env, self.env_config) or AUTO
            if self.module_class not in (AUTO, VPT):
                tell_default_policy(shown(self.env), self.module_class)

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """Return the module spec of the policy that `module_class` names."""
        return RLModuleSpec(module_class=self.policy_class)

    @property
    def policy_class(self) -> type[RecurrentRLModule]:
        """The policy's class: from `rl_module(rl_module_spec=...)`, else from `module_class`."""
        if self._policy_of_spec is not None:
            return self._policy_of_spec
        if self.module_class == AUTO:
            return find_policy(default_policy(self.env, self.env_config) or VPT)
        return find_policy(self.module_class)

    @property
    def _policy_of_spec(self) -> Any:
        spec = self._rl_module_spec
        return spec.module_class if isinstance(spec, RLModuleSpec) else None

    def known_spaces(
        self, env_defaults: Mapping[str, Any] | None = None
    ) -> dict[str, gym.Space] | None:
        """Return the environment's spaces if they are known without building it.

        Args:
            env_defaults: The policy's defaults for options of the environment, which
                `suit_env_to_policy` will set; None if it has.

        Returns:
            `observation_space` and `action_space`; None if the environment has to be built.
        """
        if self.observation_space is not None and self.action_space is not None:
            return {
                "observation_space": self.observation_space,
                "action_space": self.action_space,
            }
        suited = suited_env_config(self.env, self.env_config, env_defaults or {})
        return known_spaces(self.env, suited)

    def observations_read(self) -> set[str] | None:
        """Return the top-level observation keys that the policy reads; None: all of them."""
        blank = self.policy_class.blank(self.model_config, None)
        return None if blank is None else {keys_of(name)[0] for name in blank.observation_parts}

    def _set_option(self, name: str, value: Any) -> None:
        if name == "prior" and value != INITIAL_PRIOR:
            value = pinned(value)  # so that a restored run uses the same weights
        is_mapping = name == "model" or name in self._merged_options()
        if is_mapping and not isinstance(value, Mapping):
            raise InvalidOptionsError(broken_rule(name, value, "must be a mapping"))
        if name == "model":
            given = {key: pinned(v) if key == "weights" else v for key, v in value.items()}
            self._model_config: dict[str, Any] = {**self._model_config, **given}
        elif is_mapping:
            setattr(self, name, {**getattr(self, name), **value})
        else:
            setattr(self, name, value)

    def _merged_options(self) -> list[str]:
        return [option.name for option in fields(self.OPTIONS) if group_of(option) is not None]


# ----------------------------------- checks of a config's model and environment, for all algorithms


def model_problems(
    config: PolicyAlgorithmConfig,
    *,
    prior: str | None = None,
    ema_decay: float | None = None,
) -> list[str]:
    """Check the policy's options, and whether weights and learning rates fit the policy.

    Args:
        config: Has the policy, its options, and the learning rates of its parts.
        prior: The option of that name.
        ema_decay: Decay of the moving average of the weights; None if there is none.

    Returns:
        One sentence per problem.
    """
    options = config.model_config
    if not isinstance(config.module_class, str | type):
        return []  # reported by the option's own check
    is_chosen = config.module_class != AUTO or config._policy_of_spec is not None
    if not is_chosen and default_policy(config.env, config.env_config) is None:
        return []  # no policy can play the environment, which `env_problems` reports
    given = [options.get("weights"), None if prior == INITIAL_PRIOR else prior]
    sources = {str(source): source for source in given if source is not None}
    opened: dict[str, Checkpoint] = {}
    try:
        policy = config.policy_class
        problems = _disagreement(config) + foreign_model_problems(options, policy)
        for name, source in sources.items():
            try:
                opened[name] = checkpoints.open(source)
                problems += class_problems(policy, opened[name])
                now = looks_of_env(config.env, config.env_config)
                tell_other_looks(opened[name].name, opened[name].looks, now)
            except CheckpointMismatchError as error:
                problems.append(str(error))
        if problems:
            return problems
        if options.get("weights") is not None:
            options = {**options, "weights": opened[str(options["weights"])]}
        spaces = config.known_spaces(policy.env_defaults(options))
        blank = policy.blank(options, spaces)
        if spaces is not None and (problems := policy.space_problems(options, spaces)):
            return problems
        if blank is None:  # check at least what can be checked without the spaces
            policy.check_options(config.model_config)
            return []
        if spaces is not None and (problems := _unseen_parts(blank, spaces["observation_space"])):
            return problems
    except InvalidOptionsError as error:
        return error.problems
    except MineStudioError as error:
        return [str(error)]
    network = blank.network
    for checkpoint in opened.values():
        problems += policy.weights_problems(network, checkpoint)
    if ema_decay is not None:
        problems += _problems_of(lambda: WeightAverage(network, ema_decay))
    problems += _problems_of(lambda: freeze(network, options.get("freeze", ())))
    problems += _problems_of(lambda: parameter_groups(network, config.lr_factors))
    return problems


def _unseen_parts(policy: RecurrentRLModule, space: gym.Space) -> list[str]:
    """Return which parts of an observation a policy reads and the environment does not show."""
    if policy.observation_space != space:
        return []  # built without the environment's spaces, which `space_problems` has compared
    read = policy.observation_parts
    shown_parts = parts_of(space, {keys_of(name)[0] for name in read})
    problems = []
    for name, part in read.items():
        found = shown_parts.get(name)
        if found is None:
            problems.append(
                f"The policy {type(policy).__name__} reads {name!r}, which the environment does "
                f"not show: its observations are {shown(space)}."
            )
        elif found != part:
            problems.append(
                f"The policy {type(policy).__name__} reads {name!r} as {part.dtype} {part.shape}, "
                f"but the environment shows {found.dtype} {found.shape}."
            )
    return problems


def recorded_parts_problems(config: SharedOptions, recordings: Iterable[str | Path]) -> list[str]:
    """Return why the policy cannot learn from the recordings, in at most one sentence."""
    policy = config.policy_class.blank(config.model_config, config.known_spaces())
    if policy is None:
        return []
    heads = list(policy.action_space)
    if set(heads) != set(TOKEN_COLUMNS):
        return [
            f"recordings have {' and '.join(TOKEN_COLUMNS)}, but the policy's actions are "
            f"{', '.join(heads)}: only policies that act in MineStudio's tokens can be cloned."
        ]
    return unreadable_parts(policy.observation_parts, recordings)


def env_problems(env: Any, env_config: Mapping[str, Any]) -> list[str]:
    """Check a config's environment and its options; return one sentence per problem."""
    problems = _problems_of(lambda: resolve_env(env))
    if problems:
        return problems
    if is_minestudio(env):
        return _problems_of(lambda: MineStudioEnv.check_options(env_config))
    return _problems_of(lambda: known_adapter(env, env_config))


def _disagreement(config: PolicyAlgorithmConfig) -> list[str]:
    """Return a problem if two different policies are configured; the default does not count."""
    policy, name = config.policy_class, config.module_class
    if name == AUTO or find_policy(name) is policy:
        return []
    return [
        f"module_class is {shown(name)}, but rl_module_spec.module_class is {policy.__name__}: "
        "leave out one of them."
    ]


def _problems_of(check: Callable[[], Any]) -> list[str]:
    """Return the problems that `check` raises."""
    try:
        check()
    except InvalidOptionsError as error:
        return error.problems
    except MineStudioError as error:
        return [str(error)]
    return []


# ---------------------------------------------------------------- bounds of the numbers in a config
# RLlib's settings are listed here; our options declare their own bounds.
#
# RLlib accepts nearly any number, and a NaN may only show after hours. Upper bounds are beyond what
# any machine has, so that a typo is reported before memory is allocated.

RLLIB_INTEGERS: dict[str, tuple[int, int]] = {
    "num_env_runners": (0, 10_000),
    "num_learners": (0, 10_000),
    "num_envs_per_env_runner": (1, 10_000),
    "rollout_fragment_length": (1, MANY),
    "max_requests_in_flight_per_env_runner": (1, 10_000),
    "metrics_num_episodes_for_smoothing": (1, 10**7),
    "evaluation_num_env_runners": (0, 10_000),
    "max_num_env_runner_restarts": (0, EVER),
}
"""RLlib setting -> lower and upper bound."""

RLLIB_OPTIONAL_INTEGERS: dict[str, tuple[int, int]] = {
    "seed": (0, 2**32 - 1),
    "evaluation_interval": (0, EVER),
    "dataset_num_iters_per_learner": (1, EVER),
}
"""The same, for settings that may be null."""

RLLIB_NUMBERS: dict[str, tuple[float, float]] = {
    "sample_timeout_s": (1e-6, math.inf),
    "evaluation_sample_timeout_s": (1e-6, math.inf),
    "env_runner_restore_timeout_s": (0.0, math.inf),
    "env_runner_health_probe_timeout_s": (0.0, math.inf),
    "num_cpus_per_env_runner": (0.0, 1e6),
    "num_gpus_per_env_runner": (0.0, 1e6),
    "num_gpus_per_learner": (0.0, 1e6),
    "num_cpus_for_main_process": (0.0, 1e6),
}
RLLIB_FLAGS: dict[str, tuple[float, float]] = {"compress_observations": (0, 1)}
RLLIB_OPTIONAL_NUMBERS: dict[str, tuple[float, float]] = {"min_time_s_per_iteration": (0.0, 1e9)}

_TABLES: tuple[tuple[type, bool, Mapping[str, tuple[float, float]]], ...] = (
    (int, False, RLLIB_INTEGERS),
    (int, True, RLLIB_OPTIONAL_INTEGERS),
    (float, False, RLLIB_NUMBERS),
    (float, True, RLLIB_OPTIONAL_NUMBERS),
    (bool, False, RLLIB_FLAGS),
)
"""(type, whether it may be null, bounds by setting)"""


def range_problems(config: PolicyAlgorithmConfig) -> list[str]:
    """Return which settings and options of a config are outside their bounds, one sentence each."""
    values = vars(config)
    problems: list[str] = []
    for kind, nullable, table in _TABLES:
        for name, (least, most) in table.items():
            bounds = Bounds(least=least, most=most)
            problems += value_problems(name, values[name], kind, nullable, bounds)
    if config.evaluation_duration != "auto":
        bounds = Bounds(least=1, most=MANY)
        problems += value_problems(
            "evaluation_duration", config.evaluation_duration, int, False, bounds
        )
    problems += option_problems(config.OPTIONS, values)
    return [*problems, *_nan_problems(values, numbers_of(config.OPTIONS))]


def numbers_of(options: type) -> set[str]:
    """Return the names of the settings and options that have bounds."""
    judged = {name for name, (kind, _) in types_of(options).items() if kind in (int, float)}
    return judged.union(*(table for _, _, table in _TABLES))


def _nan_problems(options: Mapping[str, Any], judged: set[str]) -> list[str]:
    """Find NaN in values without bounds, including nested mappings and lists."""
    return [
        broken_rule(path, math.nan, "must be a number")
        for name, value in options.items()
        if not name.startswith("_") and name not in judged
        for path in _paths_of_nan(name, value)
    ]


def _paths_of_nan(path: str, value: Any) -> Iterable[str]:
    if isinstance(value, float) and math.isnan(value):
        yield path
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _paths_of_nan(f"{path}.{key}", part)
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            yield from _paths_of_nan(f"{path}[{i}]", part)


# ----------------------------------------------------------------------- evaluation during training


class EvaluatedConfig(AlgorithmConfig):
    """A config that evaluates on our own env runners: a fixed set of whole episodes.

    RLlib's own sampling takes the episodes that end first, which favours short ones.
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class)
        self.evaluation_options: dict[str, Any] = {}

    def evaluation(
        self, *, evaluation_options: Mapping[str, Any] = NotProvided, **kwargs: Any
    ) -> EvaluatedConfig:
        """Set how the policy is evaluated during training.

        Args:
            evaluation_options: Options that RLlib lacks: `filter`, `record`, `only`, `seed`,
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
        """Prepare the config for evaluation if it is configured.

        Args:
            always: Whether to prepare even if it is not.

        Raises:
            InvalidOptionsError: If the config cannot be evaluated, with one sentence per problem.
        """
        asked_for = self.evaluation_interval or self.evaluation_num_env_runners
        if not self.in_evaluation and (always or asked_for):
            hooks.install_evaluation(self)


def prepare_to_evaluate(algorithm: Any) -> None:
    """Build an algorithm's env runners for evaluation, if it has none yet.

    Raises:
        InvalidOptionsError: If its config cannot be evaluated, with one sentence per problem.
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
