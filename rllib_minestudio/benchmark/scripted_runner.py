"""Plays episodes with a scripted agent, as `EvaluationEnvRunner` does with a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rllib_minestudio.algorithms.env_pool.base import USER_ERRORS
from rllib_minestudio.algorithms.env_pool.episode import (
    Episode,
    RunningEpisode,
    describe,
    plain_info,
)
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents.scripted import Agent, make_agent
from rllib_minestudio.evaluation.env_runner import evaluated
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_env import EvaluationEnv, make_evaluation_env
from rllib_minestudio.evaluation.request import EpisodeSpec, PlaySettings
from rllib_minestudio.evaluation.seeds import agent_seed

SOLUTION = "solution"
"""The player that plays each task's own scripted solution."""


@dataclass(frozen=True)
class AgentOrder:
    """Which agent is to play.

    Attributes:
        name: One of `agent_names.AGENTS`, or `SOLUTION`.
        solution: For `SOLUTION`: the family and its parameters.
    """

    name: str
    solution: Mapping[str, Any] | None = None

    def make(self, seed: int) -> Agent:
        """Make the agent."""
        if self.name == SOLUTION:
            from rllib_minestudio.benchmark.solutions import SolutionAgent

            return SolutionAgent(self.solution, seed)
        return make_agent(self.name, seed=seed)


class ScriptedRunner:
    """Plays one episode after the other in one environment; in this process, or as an actor."""

    def __init__(self) -> None:
        """Build nothing yet."""
        self._env: EvaluationEnv | None = None
        self._env_config: Mapping[str, Any] | None = None

    def ping(self) -> None:
        """Answer, when the actor has been restarted."""

    def play(
        self, specs: Sequence[EpisodeSpec], settings: PlaySettings, order: AgentOrder
    ) -> Iterator[EvaluatedEpisode]:
        """Play episodes, and yield each as it ends.

        An episode whose environment or agent fails is begun again, `settings.max_attempts` times
        in all.

        Args:
            specs: What to play.
            settings: How; `env_config` says in which environment.
            order: Who.
        """
        if settings.env_config != self._env_config:
            self.close()
            self._env_config = settings.env_config
        for spec in specs:
            yield self._play_one(spec, settings, order)

    def close(self) -> None:
        """Close the environment; the next episode builds another."""
        env, self._env = self._env, None
        if env is not None:
            env.close()

    def _play_one(
        self, spec: EpisodeSpec, settings: PlaySettings, order: AgentOrder
    ) -> EvaluatedEpisode:
        while True:
            ended: Episode | None = None
            try:
                ended = self._attempt(spec, settings, order)
                error = ended.env_error
            except USER_ERRORS:
                raise
            except Exception as failure:
                error = describe(failure)
                self.close()
            if error is None or spec.attempt >= settings.max_attempts:
                return evaluated(spec, settings, ended, error)
            spec = spec.again()

    def _attempt(self, spec: EpisodeSpec, settings: PlaySettings, order: AgentOrder) -> Episode:
        """Play an episode from its reset to its end."""
        if self._env is None:
            options = {"seed": 0, **(self._env_config or {})}
            self._env = make_evaluation_env(lambda: MineStudioEnv(options))
        env = self._env
        agent = order.make(agent_seed(settings.seed, spec.index))
        _, info = env.reset(seed=settings.world_seed(spec), options=settings.reset_options(spec))
        agent.reset()
        running, done = RunningEpisode(0, plain_info(info)), False
        while not done:
            _, reward, terminated, truncated, info = env.step(agent.act(env))
            running.add(float(reward), gamma=1.0)
            done = terminated or truncated
        return running.finish(plain_info(info))
