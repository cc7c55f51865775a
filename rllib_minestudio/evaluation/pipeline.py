"""MineStudio's `EpisodePipeline` interface, implemented with this package's evaluation.

    pipeline = EpisodePipeline(
        MineGenerator(
            num_workers=4,
            env_generator=partial(MinecraftSim, obs_size=(128, 128)),
            agent_generator=lambda: MyAgent(),
            num_max_steps=1200,
            num_episodes=25,
        ),
        InfoBaseFilter(key="mine_block", regex=".*diamond_ore.*", num=1),
    )
    summary = pipeline.run()

Instead of a function that makes an agent, it also takes a checkpoint, which plays on the env
runners of evaluations. An episode ends with its task, whereas MineStudio's continues to
`num_max_steps` through any number of deaths.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_minestudio.env.agents.user_agents import AgentMaker, is_agent_path, shipped
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.agent_runner import (
    TIMEOUT_S,
    AgentGroup,
    AgentOrder,
    play_episodes,
    require_gpu,
)
from rllib_minestudio.evaluation.during_training import environment_identity, generated_identity
from rllib_minestudio.evaluation.episode import LONGEST_EPISODE, STATUS, EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.evaluation.filters import EpisodeFilter
from rllib_minestudio.evaluation.policy_loading import evaluation_config, load_policy, tell_of_looks
from rllib_minestudio.evaluation.request import only_episodes
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.foundation.options import Problems, is_integer, is_number

MINESTUDIO = "minestudio"


class MineGenerator:
    """A generator of episodes, with the arguments of MineStudio's `MineGenerator`."""

    def __init__(
        self,
        num_workers: int = 1,
        num_gpus: float = 0.0,
        max_restarts: int = 3,
        *,
        env_generator: Callable[[], Any] | None = None,
        agent_generator: Callable[..., Any] | str | None = None,
        checkpoint: str | None = None,
        env_config: Mapping[str, Any] | None = None,
        num_max_steps: int = LONGEST_EPISODE,
        num_episodes: int = 1,
        tmpdir: str | None = None,
        image_media: str = "h264",
        format: str = MINESTUDIO,
        seed: int = 0,
        deterministic: bool = False,
        agent_timeout_s: float = TIMEOUT_S,
        envs_per_worker: int = 1,
        trust: bool = False,
    ) -> None:
        """Check the arguments; nothing is started before `generate`.

        Args:
            num_workers: Number of processes.
            num_gpus: Share of a GPU per worker; MineStudio's own default is 0.5.
            max_restarts: How often an episode is repeated after its environment or agent has
                failed, and how often a process that died is restarted.
            env_generator: Makes an environment whose frames are `obs["image"]` or `info["pov"]`. It
                is pickled, and called in the workers.
            agent_generator: Makes an agent with any interface in `env/agents/user_agents.py`;
                likewise.
                A string is `module:function`, or a checkpoint's name.
            checkpoint: Instead of `agent_generator`: a policy's checkpoint, as `rllib train` saves
                it.
            env_config: Instead of `env_generator`: options of `MineStudioEnv`; with a checkpoint,
                they replace those of its training.
            num_max_steps: Steps after which an episode is truncated.
            num_episodes: Episodes per worker, as in MineStudio.
            tmpdir: Folder for recordings; None records nothing.
            image_media: `h264` or `jpeg`.
            format: `minestudio` for the files of MineStudio's worker, or `episodes`.
            seed: Seed of the episodes; the same seed gives the same episodes.
            deterministic: Take the most probable actions, if the agent supports it.
            agent_timeout_s: Seconds that an agent may take for an action.
            envs_per_worker: Environments per worker, for an agent that acts on batches.
            trust: Whether to do all that a checkpoint asks for, whoever wrote it.

        Raises:
            InvalidOptionsError: An argument is wrong; lists all problems.
            CheckpointMismatchError: The checkpoint holds no such policy.
        """
        _check_numbers(
            {
                "num_workers": (num_workers, 1),
                "num_episodes": (num_episodes, 1),
                "max_restarts": (max_restarts, 0),
                "envs_per_worker": (envs_per_worker, 1),
            },
            num_gpus,
            agent_timeout_s,
        )
        record = None
        if tmpdir is not None:
            folder = str(Path(tmpdir).resolve())
            record = {"folder": folder, "format": format, "media": image_media}
        self.options = EvaluationOptions.from_mapping(
            {
                "episodes": num_workers * num_episodes,
                "seed": seed,
                "deterministic": deterministic,
                "max_steps": num_max_steps,
                "max_attempts": 1 + max_restarts,
                "record": record,
            }
        )
        self._num_gpus = num_gpus
        self._played: _Policy | _Agent
        player = _the_player(agent_generator, checkpoint, env_generator, env_config)
        if env_generator is None and agent_generator is None:
            self._played = _Policy(player, env_config, num_workers, num_gpus, trust)
            return
        self._played = _Agent(
            agent=maker_of(player),
            env_generator=env_generator,
            env_config=env_config,
            order={
                "timeout_s": agent_timeout_s,
                "num_envs": envs_per_worker,
                "gpu": num_gpus > 0,
            },
            group=AgentGroup(num_workers, gpus=num_gpus, restarts=max_restarts),
        )

    @property
    def facts(self) -> dict[str, Any]:
        """Seed, policy and environment of the episodes, for the summary."""
        return {
            "seed": self.options.seed,
            "policy": {**self._played.identity, "deterministic": self.options.deterministic},
            "config": self._played.environment(self.options),
        }

    def generate(self) -> Iterator[EvaluatedEpisode]:
        """Play all episodes and yield each as it ends; start Ray if it is not running.

        Raises:
            InvalidOptionsError: There are not enough GPUs, or a function does not make an
                environment or an agent.
            EnvRunnersLostError: No worker is left.
        """
        if not ray.is_initialized():
            ray.init(include_dashboard=False)
        require_gpu(self._num_gpus)
        yield from self._played.play(self.options, self.facts["policy"])


class _Policy:
    """A checkpoint's policy, played on `EvaluationEnvRunner`s."""

    def __init__(
        self,
        checkpoint: str,
        env_config: Mapping[str, Any] | None,
        workers: int,
        gpus: float,
        trust: bool,
    ) -> None:
        self._policy = load_policy(checkpoint, trust=trust)
        if env_config is not None:
            self._policy.config.environment(env_config=dict(env_config))
        tell_of_looks(self._policy)
        self._config = evaluation_config(
            self._policy.config, num_env_runners=workers, num_gpus=gpus
        )
        self.identity = self._policy.identity

    def environment(self, options: EvaluationOptions) -> dict[str, Any]:
        """Describe the environment for summaries."""
        return environment_identity(self._config, options)

    def play(
        self, options: EvaluationOptions, policy: Mapping[str, Any]
    ) -> Iterator[EvaluatedEpisode]:
        """Play all episodes."""
        group = EnvRunnerGroup(config=self._config, local_env_runner=False)
        try:
            settings = options.settings(policy)
            played = play_episodes(group, options.episodes, settings, self._policy.weights)
            yield from only_episodes(played)
        finally:
            group.stop()


class _Agent:
    """A foreign agent, in any environment."""

    def __init__(
        self,
        *,
        agent: AgentMaker,
        env_generator: Callable[[], Any] | None,
        env_config: Mapping[str, Any] | None,
        order: Mapping[str, Any],
        group: AgentGroup,
    ) -> None:
        self.identity = dict(agent.identity)
        self._env_generator, self._env_config = env_generator, env_config
        pickled = None if env_generator is None else shipped(env_generator, "env_generator")
        self._order = AgentOrder(agent, pickled, **order)
        self._group = group

    def environment(self, options: EvaluationOptions) -> dict[str, Any]:
        """Describe the environment for summaries."""
        return generated_identity(self._order.env, self._env_generator, self._env_config, options)

    def play(
        self, options: EvaluationOptions, policy: Mapping[str, Any]
    ) -> Iterator[EvaluatedEpisode]:
        """Play all episodes."""
        settings = replace(options.settings(policy), env_config=self._env_config)
        try:
            yield from only_episodes(self._group.play(options.episodes, settings, self._order))
        finally:
            self._group.stop()


def maker_of(agent: Callable[..., Any] | str) -> AgentMaker:
    """Return the maker of an agent given as function, `module:function`, or checkpoint name.

    Raises:
        InvalidOptionsError: It is none of these, or cannot be imported.
    """
    if not isinstance(agent, str):
        return AgentMaker.of(agent)
    if is_agent_path(agent):
        return AgentMaker.named(agent)
    return replace(AgentMaker.of(lambda: agent), name=agent, identity={"checkpoint": agent})


def _check_numbers(
    integers: Mapping[str, tuple[Any, int]], gpus: Any, agent_timeout_s: Any
) -> None:
    problems = Problems()
    for name, (value, least) in integers.items():
        if not is_integer(value) or value < least:
            problems.add(name, value, f"must be an integer of at least {least}")
    if not is_number(gpus) or gpus < 0:
        problems.add("num_gpus", gpus, "must be a number of at least 0")
    if not is_number(agent_timeout_s) or agent_timeout_s <= 0:
        problems.add("agent_timeout_s", agent_timeout_s, "must be a positive number of seconds")
    problems.raise_if_any()


def _the_player(agent: Any, checkpoint: Any, env_generator: Any, env_config: Any) -> Any:
    """Return the agent's maker or the checkpoint: one of them is given, and one environment."""
    if env_generator is None and agent is None and checkpoint is None:
        raise InvalidOptionsError("MineGenerator needs a player: agent_generator or checkpoint.")
    if env_generator is not None and env_config is not None:
        raise InvalidOptionsError(
            "MineGenerator takes either env_generator or env_config: both make environments."
        )
    if (agent is None) == (checkpoint is None):
        raise InvalidOptionsError(
            "MineGenerator takes either agent_generator or checkpoint; got "
            f"{'neither' if agent is None else 'both'}."
        )
    return checkpoint if agent is None else agent


class EpisodeRecorder:
    """The last stage of the pipeline, which summarises the labelled episodes.

    MineStudio's class of this name only counts the episodes labelled `yes`.
    """

    def record(self, episodes: Iterable[EvaluatedEpisode], **facts: Any) -> Summary:
        """Return the summary of episodes in any order."""
        return Summary.of(episodes, **facts)


class EpisodePipeline:
    """A pipeline that generates, filters and records episodes one at a time."""

    def __init__(
        self,
        episode_generator: Any,
        episode_filter: EpisodeFilter | Sequence[EpisodeFilter] | None = None,
        episode_recorder: EpisodeRecorder | None = None,
    ) -> None:
        """Combine the parts.

        Args:
            episode_generator: An object whose `generate()` yields episodes.
            episode_filter: One or several filters, each of which writes its label. Of several with
                the same label, an episode has to pass only one, as in MineStudio; combine them with
                `&` to require all.
            episode_recorder: Makes the summary of the labelled episodes.
        """
        self.episode_generator = episode_generator
        filters = episode_filter if isinstance(episode_filter, Sequence) else [episode_filter]
        by_label: dict[str, EpisodeFilter] = {}
        for one in filters:
            if one is not None:
                known = by_label.get(one.label)
                by_label[one.label] = one if known is None else _either(known, one)
        self.episode_filter = by_label
        self.episode_recorder = episode_recorder or EpisodeRecorder()

    def run(self) -> dict[str, Any]:
        """Run to the end and return the summary, with MineStudio's keys first (`num_yes`, ...)."""
        started = time.perf_counter()
        episodes = self.episode_generator.generate()
        for episode_filter in self.episode_filter.values():
            episodes = episode_filter.filter(episodes)
        status = self.episode_filter.get(STATUS)
        summary = self.episode_recorder.record(
            episodes,
            filter=None if status is None else str(status),
            **getattr(self.episode_generator, "facts", {"seed": 0}),
        )
        return replace(summary, seconds=time.perf_counter() - started).to_json()


def _either(one: EpisodeFilter, other: EpisodeFilter) -> EpisodeFilter:
    both = one | other
    both.label = one.label
    return both
