"""`rllib play`: a scripted agent, a policy or a foreign agent plays an experiment's task."""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints.lookup import BEST, LATEST
from rllib_minestudio.errors import InvalidOptionsError, RecordingError, did_you_mean
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.experiments.evaluate_checkpoint import EvaluationRequest
from rllib_minestudio.experiments.experiment_file import load_experiments, make_importable
from rllib_minestudio.experiments.played_policy import (
    TaskPolicy,
    is_experiment_file,
    of_environment,
    refuse_model_changes,
    task_of,
    task_policy,
)
from rllib_minestudio.experiments.ray_session import quieten, set_environment
from rllib_minestudio.foundation.agent_names import AGENTS, HUNTER
from rllib_minestudio.foundation.console import phase
from rllib_minestudio.foundation.episode_info import POV
from rllib_minestudio.foundation.files import require_room
from rllib_minestudio.foundation.options import Flag, broken_rule, like, option

if TYPE_CHECKING:
    import gymnasium as gym

    from rllib_minestudio.env.agents.user_agents import AgentMaker
    from rllib_minestudio.evaluation.play_loop import ActionChooser

LEAST_ROOM = 1024**2
"""Bytes that must be free before an episode is recorded."""


@dataclass(frozen=True, kw_only=True)
class PlayRequest:
    """A request to play: task, agent, number of episodes, and output folder."""

    task: Path = option(
        MISSING,
        "An experiment file; of several experiments the first one counts.",
        Flag("TASK", is_positional=True),
    )
    agent: str = option(HUNTER, "Who plays.", Flag("NAME|CHECKPOINT|FILE|MODULE:FUNCTION"))
    deterministic: bool = like(EvaluationOptions, "deterministic")
    episodes: int = like(
        EvaluationOptions, "episodes", default=1, sentence="How many episodes are played."
    )
    max_steps: int = like(EvaluationOptions, "max_steps")
    seed: int = like(
        EvaluationOptions,
        "seed",
        sentence="Seed of the first episode, and of what the agent draws.",
    )
    out: str = option("plays", "Where recordings go, numbered on from those there.", Flag("DIR"))
    trust: bool = like(EvaluationRequest, "trust")
    quiet: bool = like(EvaluationRequest, "quiet")
    overrides: tuple[str, ...] = like(
        EvaluationRequest,
        "overrides",
        sentence="Change an option of the task's environment, or of the policy that plays it, by "
        "its dotted path: `env_config.callbacks.5.JudgeReset.time_limit=300`, "
        "`model.temperature=0.8` of a checkpoint, `model.weights=PATH` of FILE.",
    )


def play_task(request: PlayRequest) -> list[float]:
    """Play a task with an agent, and record each episode with keys and rewards below the frames.

    Returns:
        The undiscounted return of each episode.

    Raises:
        MineStudioError: The file, an option, the checkpoint or the folder is invalid.
    """
    make_importable(Path.cwd())
    set_environment()
    quieten(verbose=False)

    found = find_player(request)
    # These import Ray, so its environment variables must be set first.
    from gymnasium.wrappers import TimeLimit

    from rllib_minestudio.algorithms.environments import suited_env_config
    from rllib_minestudio.env.recorder import EpisodeRecorder, RecorderOptions
    from rllib_minestudio.evaluation.play_loop import play_episodes, step_messages
    from rllib_minestudio.experiments.environment import build_env

    require_room(Path(request.out), LEAST_ROOM)
    task = load_experiments(request.task, of_environment(request.overrides))[0]
    env_id, env_config, _ = task_of(task)
    if isinstance(found, TaskPolicy):
        env_config = suited_env_config(env_id, env_config, found.env_defaults)
    else:
        refuse_model_changes(request.overrides, request.agent)
    options = RecorderOptions(request.out, source=POV, overlay=True)
    # Within the recorder, which thus learns that an episode was truncated.
    env = EpisodeRecorder(
        TimeLimit(build_env(env_id, env_config, seed=0), request.max_steps), options
    )
    with phase(f"playing {task.name}, at most {request.max_steps:,} steps an episode") as show:
        returns = play_episodes(
            env,
            make_player(found, env, request),
            request.episodes,
            seed=request.seed,
            on_step=step_messages(show, request.episodes),
            max_steps=request.max_steps,
        )
    env.close()
    if env.failures:
        raise RecordingError(env.failures[0])
    return returns


def find_player(request: PlayRequest) -> str | TaskPolicy | AgentMaker:
    """Find who is to play, before anything is built.

    Returns:
        The name of a scripted agent, an open policy, or the maker of a foreign agent.

    Raises:
        InvalidOptionsError: It is neither, or its options cannot be changed in this way.
        CheckpointMismatchError: There is no such checkpoint.
        CheckpointError: It is damaged.
    """
    from rllib_minestudio.env.agents.user_agents import AgentMaker, is_agent_path

    agent, deterministic = request.agent, request.deterministic
    if is_agent_path(agent):
        return AgentMaker.named(agent)
    if agent in AGENTS:
        if deterministic:
            rule = f"is for policies; the agent {agent!r} is scripted"
            raise InvalidOptionsError(broken_rule("--deterministic", deterministic, rule))
        return agent
    is_word = re.fullmatch(r"[\w-]+", agent) and agent not in (BEST, LATEST)
    if is_word and not Path(agent).exists():
        rule = f"must be one of {', '.join(AGENTS)}, or a checkpoint"
        raise InvalidOptionsError(broken_rule("--agent", agent, rule) + did_you_mean(agent, AGENTS))
    if is_experiment_file(agent):
        return task_policy(agent, request.overrides)
    opened = checkpoints.open(agent, verified=True, trust=request.trust)
    return task_policy(opened, request.overrides)


class _OwnAgent:
    """A foreign agent as an `ActionChooser`, with its own seed for each episode."""

    def __init__(self, maker: AgentMaker, env: gym.Env, request: PlayRequest) -> None:
        from rllib_minestudio.env.agents.user_agents import WatchedAgent
        from rllib_minestudio.evaluation.agent_runner import load_checkpoint

        greedy = request.deterministic
        load = partial(load_checkpoint, deterministic=greedy, trust=request.trust)
        self._agent = WatchedAgent(maker, deterministic=greedy, load=load)
        self._env, self._seed = env, request.seed
        self._episode = -1

    def reset(self) -> None:
        from rllib_minestudio.evaluation.request import agent_seed

        self._episode += 1
        self._agent.begin(self._env, agent_seed(self._seed, self._episode))

    def act(self, observation: Any) -> Any:
        return self._agent.act(observation)


def make_player(
    agent: str | TaskPolicy | AgentMaker, env: gym.Env, request: PlayRequest
) -> ActionChooser:
    """Build what `find_player` found, for an environment."""
    seed, deterministic = request.seed, request.deterministic
    if not isinstance(agent, str | TaskPolicy):
        return _OwnAgent(agent, env, request)
    from rllib_minestudio.env.agents.scripted import make_agent
    from rllib_minestudio.evaluation.inference import Policy
    from rllib_minestudio.evaluation.play_loop import ScriptedPolicy

    if isinstance(agent, TaskPolicy):
        return Policy(agent.load(env), deterministic=deterministic, seed=seed)
    return ScriptedPolicy(make_agent(agent, seed=seed), env)
