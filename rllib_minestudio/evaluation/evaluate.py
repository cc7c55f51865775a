"""Evaluation of a policy: playing episodes, filtering, keeping recordings, and the summary."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_minestudio.algorithms.environments import is_embedded, is_minestudio, known_spaces
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.adapter import RENDER_MODE
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.env.recorder import NO_GAMES_TO_SAVE, why_unrecordable
from rllib_minestudio.env.voxel import RULES
from rllib_minestudio.evaluation.agent_runner import AgentGroup, AgentOrder
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.evaluation.parallel import play_episodes
from rllib_minestudio.evaluation.request import only_episodes
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.foundation.values import digest, plain
from rllib_minestudio.recordings.writer import files_of

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

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
