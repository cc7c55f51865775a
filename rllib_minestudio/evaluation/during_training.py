"""Evaluation by a Python call, and during training."""

from __future__ import annotations

import hashlib
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, EVALUATION_RESULTS, WEIGHTS_SEQ_NO
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from rllib_minestudio.algorithms import MineStudioBCConfig
from rllib_minestudio.algorithms.env_runner import wanted_callbacks
from rllib_minestudio.algorithms.environments import is_embedded, is_minestudio, known_spaces
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.adapter import RENDER_MODE
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.env.recorder import NO_GAMES_TO_SAVE, why_unrecordable
from rllib_minestudio.env.voxel import RULES
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.agent_runner import AgentGroup, AgentOrder, play_episodes
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner, load_prior, open_prior
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_options import (
    PAGE_FILE,
    SUMMARY_FILE,
    EvaluationOptions,
)
from rllib_minestudio.evaluation.policy_loading import evaluation_config, playing_config
from rllib_minestudio.evaluation.report import write_page
from rllib_minestudio.evaluation.request import only_episodes
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.foundation.options import shown
from rllib_minestudio.foundation.recording_options import AUTO
from rllib_minestudio.foundation.values import digest, plain
from rllib_minestudio.recordings.writer import files_of

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


# --------- evaluation of a policy: playing episodes, filtering, keeping recordings, and the summary

OnEpisode = Callable[[EvaluatedEpisode], None]

_OUR_ENV = f"{MineStudioEnv.__module__}.{MineStudioEnv.__qualname__}"
"""The name that checkpoints use; experiment files have another for the same class."""


def evaluate(
    group: EnvRunnerGroup | AgentGroup,
    options: EvaluationOptions,
    *,
    agent: AgentOrder | None = None,
    env_config: Mapping[str, Any] | None = None,
    weights: Any = None,
    prior: Any = None,
    policy: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    on_episode: OnEpisode | None = None,
    on_steps: Callable[[int], None] | None = None,
) -> Summary:
    """Play all episodes and summarise them.

    Args:
        group: `EvaluationEnvRunner`s, or processes that play with `agent`.
        options: What to evaluate, and how.
        agent: The agent, unless a policy of this package plays.
        env_config: Options of the agent's environment if that is `MineStudioEnv`.
        weights: The module's state; None keeps the env runners' present weights.
        prior: The state of the frozen policy that `options.kl_to` names.
        policy: Description of the policy for the summary.
        config: Description of the environment for the summary; see `environment_identity`.
        on_episode: Called with each episode as it ends.
        on_steps: Called about every second with the steps played since its last call.

    Raises:
        EnvRunnersLostError: No env runner is left.
        MineStudioError: An env runner gave up.
    """
    started = time.perf_counter()
    identity = {**(policy or {}), "deterministic": options.deterministic}
    settings = replace(options.settings(identity), tells_steps=on_steps is not None)
    if isinstance(group, AgentGroup):
        assert agent is not None
        played = group.play(options.episodes, replace(settings, env_config=env_config), agent)
    else:
        played = play_episodes(group, options.episodes, settings, weights, prior)
    episodes = only_episodes(played, on_steps)
    condition = options.condition
    if condition is not None:
        episodes = condition.filter(episodes)
    found = []
    for episode in keep_chosen(episodes, options):
        found.append(episode)
        if on_episode is not None:
            on_episode(episode)
    return Summary.of(
        map(still_recorded, found),
        seed=options.seed,
        filter=options.filter,
        policy=identity,
        config=config or {},
        seconds=time.perf_counter() - started,
    )


def recording_problems(config: AlgorithmConfig, options: EvaluationOptions) -> list[str]:
    """Return why an evaluation cannot be recorded as its options ask for, in a sentence or none."""
    if options.record is None:
        return []
    if options.record.get("snapshot_interval") and not is_embedded(config.env, config.env_config):
        return [NO_GAMES_TO_SAVE]
    if is_minestudio(config.env):
        return []
    spaces = known_spaces(config.env, config.env_config)
    if spaces is None:
        return []  # the recorder itself will tell
    problem = why_unrecordable(**spaces, renders=config.env_config.get(RENDER_MODE) is not None)
    return [] if problem is None else [problem]


def environment_identity(config: AlgorithmConfig, options: EvaluationOptions) -> dict[str, Any]:
    """Describe everything that determines the worlds of an evaluation, with a digest.

    Args:
        config: The AlgorithmConfig.
        options: Options of the evaluation, for its step limit.
    """
    facts = {
        "env": _OUR_ENV if is_minestudio(config.env) else _name_of(config.env),
        "env_config": plain(dict(config.env_config)),
        "max_steps": options.max_steps,
    }
    if is_embedded(config.env, config.env_config):
        facts["rules"] = RULES
    return {**facts, "digest": digest(facts)}


def generated_identity(
    shipped: bytes | None,
    env_generator: Callable[[], Any] | None,
    env_config: Mapping[str, Any] | None,
    options: EvaluationOptions,
) -> dict[str, Any]:
    """Describe environments as `environment_identity` does, without an AlgorithmConfig.

    Args:
        shipped: The pickled function, as part of the identity.
        env_generator: The function that makes them; None means `MineStudioEnv`.
        env_config: The environments' options.
        options: Options of the evaluation, for its step limit.
    """
    function = getattr(env_generator, "func", env_generator)  # of a partial
    given = getattr(env_generator, "keywords", env_config) or {}
    facts = {
        "env": _OUR_ENV if env_generator is None else _name_of(function),
        "env_config": plain(dict(given), lambda value: type(value).__qualname__),
        "max_steps": options.max_steps,
    }
    if shipped is not None:
        facts["made_by"] = hashlib.sha256(shipped).hexdigest()[:16]
    if env_generator is None and given.get("engine", VOXEL) == VOXEL:
        facts["rules"] = RULES
    return {**facts, "digest": digest(facts)}


def _name_of(env: Any) -> str:
    """Return a name for a user's environment."""
    return env if isinstance(env, str) else getattr(env, "__qualname__", "?")


# -------------------------------------------------- removes recordings that `only` does not ask for


def keep_chosen(
    episodes: Iterable[EvaluatedEpisode], options: EvaluationOptions
) -> Iterator[EvaluatedEpisode]:
    """Remove the recordings that `options.only` does not ask for, as the episodes arrive.

    With `best_K`, a yielded episode may lose its recording later to a better episode, so that there
    are never more than K recordings besides the current one. Apply `still_recorded` at the end.
    """
    best: list[EvaluatedEpisode] = []
    for episode in episodes:
        if episode.recording is not None:
            if options.best is not None:
                best.append(episode)
                best.sort(key=lambda e: (-e.undiscounted_return, e.index))
                for beaten in best[options.best :]:
                    remove_recording(str(beaten.recording))
                del best[options.best :]
                kept = episode in best
            else:
                kept = options.only in ("all", episode.outcome)
                if not kept:
                    remove_recording(episode.recording)
            episode = episode if kept else replace(episode, recording=None)
        yield episode


def still_recorded(episode: EvaluatedEpisode) -> EvaluatedEpisode:
    """Return the episode, without `recording` if that has been removed."""
    if episode.recording is not None and not Path(episode.recording).exists():
        return replace(episode, recording=None)
    return episode


def remove_recording(path: str) -> None:
    """Remove a recording of any format."""
    for file in files_of(Path(path)):
        if file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink()


# ---------------- evaluation during training; RLlib calls it every `evaluation_interval` iterations

FOLDER = "evaluation"
"""Subfolder for summaries and recordings, with one folder per evaluation. Its parent is the trial's
folder, or the algorithm's `logdir` if no experiment runs it."""

METRICS_WITHIN_S = 60.0
"""How long an env runner may take to return what callbacks have logged; then it is left out."""

_LOCAL = "local"
"""pyarrow's name of the local file system."""

NO_FILE = (
    "evaluation: kl_to is 'prior', but no file holds this run's prior, which is drawn at random or "
    "follows the policy. Evaluate a checkpoint afterwards, or name weights."
)

_logger = logging.getLogger(__name__)


def install(config: AlgorithmConfig) -> None:
    """Make a training config evaluate on `EvaluationEnvRunner`s.

    Args:
        config: A config of MineStudioPPO or MineStudioBC, not frozen. Its `evaluation_options` are
            those of `EvaluationOptions` without `episodes` and `deterministic`, for which RLlib has
            `evaluation_duration` and `evaluation_config: {explore: false}`; `record` needs no
            folder and may be true.

    Raises:
        InvalidOptionsError: An option is wrong; lists all problems.
    """
    if config.custom_evaluation_function not in (None, evaluate_in_training, evaluate_clone):
        _install_users(config)
        return
    problems = []
    if config.evaluation_duration_unit != "episodes" or config.evaluation_duration == "auto":
        problems.append(
            "evaluation_duration must be a number of episodes; got "
            f"{shown(config.evaluation_duration)} {config.evaluation_duration_unit}. Which "
            "episodes end within a given time depends on their lengths, and so would the success "
            "rate."
        )
    if config.evaluation_parallel_to_training and config.num_learners == 0:
        problems.append(
            "evaluation_parallel_to_training is true with num_learners=0: weights would be read "
            "while they are trained. Set num_learners to 1, or evaluate in turns."
        )
    try:
        options = _options(config, Path())
        problems += recording_problems(config, options)
        kl_to = options.kl_to
        if kl_to is not None and open_prior(playing_config(config), kl_to) is None:
            problems.append(NO_FILE)
    except InvalidOptionsError as error:
        problems += error.problems
    if problems:
        raise InvalidOptionsError(problems)
    if isinstance(config, MineStudioBCConfig):
        config.custom_evaluation_function = evaluate_clone
        return
    config.custom_evaluation_function = evaluate_in_training
    _use_our_runners(config)


def _install_users(config: AlgorithmConfig) -> None:
    """Leave evaluation to the user's function, on `EvaluationEnvRunner`s.

    Raises:
        InvalidOptionsError: `evaluation_options` are set, which would have no effect.
    """
    if config.evaluation_options:
        raise InvalidOptionsError(
            f"evaluation_options is {config.evaluation_options!r} beside a "
            "custom_evaluation_function, which evaluates in its own way: leave one of them out."
        )
    _use_our_runners(config)


def _use_our_runners(config: AlgorithmConfig) -> None:
    config.evaluation_config = {
        **(config.evaluation_config or {}),
        "env_runner_cls": EvaluationEnvRunner,
    }


def evaluate_in_training(algorithm: Any, group: EnvRunnerGroup) -> tuple[dict[str, Any], int, int]:
    """Evaluate the current weights; RLlib's `custom_evaluation_function`.

    Returns:
        Metrics, environment steps, and agent steps, as RLlib expects. RLlib reports the metrics
        that were aggregated into the algorithm's logger.
    """
    return _evaluate(algorithm, group, algorithm.learners.weights())


def evaluate_clone(algorithm: Any, _: None) -> tuple[dict[str, Any], int, int]:
    """Evaluate the current weights of a MineStudioBC, which has no env runners of its own.

    Returns:
        See `evaluate_in_training`.
    """
    learner = algorithm.learner_group._learner
    config = evaluation_config(
        playing_config(algorithm.config),
        num_env_runners=0,
        num_gpus=algorithm.config.num_gpus_per_learner,
    )
    group = EnvRunnerGroup(config=config, local_env_runner=True)
    try:
        return _evaluate(algorithm, group, learner.get_state(components=COMPONENT_RL_MODULE))
    finally:
        group.stop()


def _evaluate(
    algorithm: Any, group: EnvRunnerGroup, state: dict[str, Any]
) -> tuple[dict[str, Any], int, int]:
    """Evaluate a learner's state, log the metrics, and save the summary."""
    folder = _results_of(algorithm) / FOLDER / f"iteration_{algorithm.iteration + 1:06d}"
    # A crashed attempt at this iteration may have left recordings of other episodes.
    shutil.rmtree(folder, ignore_errors=True)
    options = _options(algorithm.config, folder)
    module = state[COMPONENT_RL_MODULE]
    summary = evaluate(
        group,
        options,
        weights=module.get(DEFAULT_MODULE_ID, module),
        prior=load_prior(playing_config(algorithm.config), None, options.kl_to),
        policy={
            "name": f"iteration {algorithm.iteration + 1}",
            "weights_version": state[WEIGHTS_SEQ_NO],
        },
        config=environment_identity(algorithm.evaluation_config, options),
    )
    _save(summary, folder)
    steps = sum(episode.length for episode in summary.episodes)
    metrics = MetricsLogger()
    for name, value in reported(summary).items():
        metrics.log_value(name, value, window=1)
    told = [metrics.reduce()]
    if wanted_callbacks(algorithm.evaluation_config or algorithm.config):
        told += group.foreach_env_runner(  # logged by callbacks
            lambda runner: runner.get_metrics(), timeout_seconds=METRICS_WITHIN_S
        )
    algorithm.metrics.aggregate(told, key=(EVALUATION_RESULTS, ENV_RUNNER_RESULTS))
    return reported(summary), steps, steps


def _results_of(algorithm: Any) -> Path:
    """Return the folder for an algorithm's output, which is the same after a resume.

    Under Tune this is the trial's folder among the results, next to its checkpoints, not the
    `logdir`, which is deleted with Ray's session.
    """
    storage = getattr(algorithm, "_storage", None)
    if storage is None or storage.storage_filesystem.type_name != _LOCAL:
        return Path(algorithm.logdir)
    return Path(storage.trial_fs_path)


def reported(summary: Summary) -> dict[str, float]:
    """Return a summary's numbers, under RLlib's names where it has them."""
    facts = summary.to_json()
    numbers = {
        "episode_return_mean": facts["episode_return"]["mean"],
        "episode_return_min": facts["episode_return"]["min"],
        "episode_return_max": facts["episode_return"]["max"],
        "episode_len_mean": facts["episode_length"]["mean"],
        "num_episodes": facts["num_episodes"],
        "num_failed_episodes": facts["failed_episodes"],
        "num_repeated_attempts": facts["repeated_attempts"],
        "seconds": facts["seconds"],
        "weights_version": facts["policy"]["weights_version"],
    }
    if summary.has_success:
        low, high = facts["yes_rate_interval"]
        numbers.update(success_rate=facts["yes_rate"], success_rate_low=low, success_rate_high=high)
        for name, task in facts["tasks"].items():
            numbers[f"success_rate_of_{name}"] = task["yes_rate"]
    return {name: float(value) for name, value in numbers.items()}


def _options(config: AlgorithmConfig, folder: Path) -> EvaluationOptions:
    """Combine RLlib's evaluation options with `evaluation_options`."""
    given = dict(config.evaluation_options)
    record = given.pop("record", None)
    if record is True:
        record = {}
    if isinstance(record, dict):
        record = {"folder": str(folder / "episodes"), "source": AUTO, **record}
    explore = (config.evaluation_config or {}).get("explore", config.explore)
    return EvaluationOptions.from_mapping(
        {
            "episodes": config.evaluation_duration,
            "deterministic": not explore,
            "record": None if record is False else record,
            **given,
        }
    )


def _save(summary: Summary, folder: Path) -> None:
    """Save the summary; a failure, such as a full disk, is logged and does not end the training."""
    try:
        summary.save(folder / SUMMARY_FILE)
        write_page(summary, folder / PAGE_FILE)
    except OSError as error:
        _logger.error("The evaluation's summary could not be saved to %s: %s", folder, error)
