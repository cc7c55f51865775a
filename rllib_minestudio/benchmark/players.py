"""Who plays a benchmark: a policy, a scripted agent, or each task's scripted solution.

All of them meet the same worlds: what an episode is like follows from the benchmark's seed and the
episode's index, and the random numbers of policy and agent do, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import ray
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_minestudio.agent_names import AGENTS
from rllib_minestudio.benchmark.scripted_runner import SOLUTION, AgentOrder, ScriptedRunner
from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.benchmark.task_env import check_environment
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError, did_you_mean
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.policy_loading import LoadedPolicy, evaluation_config
from rllib_minestudio.evaluation.request import EpisodeSpec, PlaySettings
from rllib_minestudio.evaluation.workers import play_episodes, play_on_actors
from rllib_minestudio.experiments.evaluate_checkpoint import load_policy_of
from rllib_minestudio.models.policies import find_policy
from rllib_minestudio.plain_values import plain

SCRIPTED = (*AGENTS, SOLUTION)
"""Players that are no policies."""

RESTARTS = 3
"""How often an actor that died is started anew."""


class Player(Protocol):
    """Plays tasks, one after the other.

    Attributes:
        identity: What results say about it, plain.
        env_config: Options of the environment by which it sees the game; a task changes the world
            and the judge in them.
    """

    identity: dict[str, Any]
    env_config: dict[str, Any]

    def unfit(self, task: BenchmarkTask) -> str | None:
        """Return why the player has nothing to play a task by; None if it has."""

    def check(self, env_config: Mapping[str, Any]) -> None:
        """Refuse an environment that the player does not fit.

        Raises:
            MineStudioError: It does not.
        """

    def play(
        self, task: BenchmarkTask, episodes: int, settings: PlaySettings
    ) -> Iterator[EvaluatedEpisode]:
        """Play the first episodes of a task and yield each as it ends, in no particular order."""

    def close(self) -> None:
        """Give up environments and processes; the next `play` makes new ones."""


def make_player(
    name: str,
    *,
    workers: int,
    envs: int,
    gpus: float | None = None,
    deterministic: bool = False,
    overrides: Sequence[str] = (),
) -> Player:
    """Make the player of a name.

    Args:
        name: One of `SCRIPTED`, or what `load_policy` takes, or an experiment file.
        workers: Processes that play; 0 plays in this one.
        envs: Environments per process; a scripted agent plays one at a time.
        gpus: GPUs per process; None as in the policy's training.
        deterministic: Whether a policy takes its most probable actions.
        overrides: `env_config.KEY=VALUE`, changes of the environment's options.

    Raises:
        MineStudioError: There is no such player, or it cannot be loaded.
    """
    if name in SCRIPTED:
        if deterministic:
            raise InvalidOptionsError(
                f"--deterministic is for policies; {name!r} has no probabilities."
            )
        return ScriptedPlayer(name, workers)
    try:
        policy = load_policy_of(name, overrides)
    except CheckpointMismatchError as error:
        hint = did_you_mean(name, SCRIPTED)
        raise CheckpointMismatchError(
            f"{error} Players without a checkpoint: {', '.join(SCRIPTED)}.{hint}"
        ) from error
    return PolicyPlayer(policy, workers, envs, gpus, deterministic)


class PolicyPlayer:
    """A policy on the env runners of evaluations: one group of them for all tasks."""

    def __init__(
        self,
        policy: LoadedPolicy,
        workers: int,
        envs: int,
        gpus: float | None = None,
        deterministic: bool = False,
    ) -> None:
        """Check the policy; nothing is started.

        Raises:
            InvalidOptionsError: It plays in another environment than MineStudio's.
        """
        check_environment(policy.config.env)
        self._policy = policy
        self._workers, self._envs, self._gpus = workers, envs, gpus
        self._deterministic = deterministic
        self._local: EvaluationEnvRunner | None = None
        self._group: EnvRunnerGroup | None = None
        name = policy.identity["checkpoint"]
        # Weights do not tell everything that decides what is played: precision, for one.
        options = policy.config.model_config.items()
        model = plain({option: value for option, value in options if option != "weights"})
        self.identity = {
            **policy.identity,
            "name": name,
            "model": model,
            "deterministic": deterministic,
        }
        self.env_config = dict(policy.config.env_config)
        kind = find_policy(policy.config.policy_class)
        blank = kind.blank(policy.config.model_config, policy.config.known_spaces())
        self._takes = {} if blank is None else dict(blank.observation_space.spaces)

    def unfit(self, task: BenchmarkTask) -> str | None:
        """None: a policy can try everything."""
        return None

    def check(self, env_config: Mapping[str, Any]) -> None:
        """Refuse an environment whose observations are not those that the policy was trained on.

        Raises:
            InvalidOptionsError: They are not; nothing is built to find out.
        """
        given = MineStudioEnv.space_of(env_config).spaces
        problems = [
            f"{self.identity['name']!r} does not fit the observation of the tasks: {name} is "
            f"{given.get(name, 'not there')}, and the policy takes {space}."
            for name, space in self._takes.items()
            if given.get(name) != space
        ]
        if problems:
            raise InvalidOptionsError(problems)

    def play(
        self, task: BenchmarkTask, episodes: int, settings: PlaySettings
    ) -> Iterator[EvaluatedEpisode]:
        """See `Player.play`."""
        weights = self._policy.weights
        if self._workers:
            if self._group is None:
                config = self._config(settings.env_config or {})
                self._group = EnvRunnerGroup(config=config, local_env_runner=False)
            yield from play_episodes(self._group, episodes, settings, weights)
            return
        is_new = self._local is None
        if self._local is None:
            config = self._config(settings.env_config or {})
            self._local = EvaluationEnvRunner(config=config, worker_index=0, num_workers=0)
        specs = [EpisodeSpec(index) for index in range(episodes)]
        yield from self._local.play(specs, settings, weights if is_new else None)

    def close(self) -> None:
        """See `Player.close`."""
        group, self._group = self._group, None
        local, self._local = self._local, None
        if group is not None:
            group.stop()
        if local is not None:
            local.stop()

    def _config(self, env_config: Mapping[str, Any]) -> Any:
        """Return the config of env runners that begin with environments of these options."""
        own = self._policy.config.copy(copy_frozen=False)
        own.env_config = dict(env_config)
        return evaluation_config(
            own,
            num_env_runners=self._workers,
            num_envs=self._envs,
            num_gpus=self._gpus,
        )


class ScriptedPlayer:
    """A scripted agent, or each task's scripted solution."""

    def __init__(self, name: str, workers: int) -> None:
        """Start nothing yet."""
        self._name, self._workers = name, workers
        self._local: ScriptedRunner | None = None
        self._actors: dict[int, Any] = {}
        self.identity = {"name": name}
        self.env_config: dict[str, Any] = {}

    def unfit(self, task: BenchmarkTask) -> str | None:
        """Say if a task has no scripted solution; agents by name can try everything."""
        if self._name == SOLUTION and task.solution is None:
            return "No scripted solution is shipped for it."
        return None

    def check(self, env_config: Mapping[str, Any]) -> None:
        """Scripted agents look at the game itself, which must be the embedded engine's.

        Raises:
            InvalidOptionsError: It is another one.
        """
        engine = env_config.get("engine", "voxel")
        if engine != "voxel" and self._name != "random":
            raise InvalidOptionsError(
                f"{self._name!r} looks at the embedded engine's state; with env_config.engine "
                f"{engine!r}, only policies and 'random' play."
            )

    def play(
        self, task: BenchmarkTask, episodes: int, settings: PlaySettings
    ) -> Iterator[EvaluatedEpisode]:
        """See `Player.play`."""
        order = AgentOrder(self._name, task.solution if self._name == SOLUTION else None)
        specs = [EpisodeSpec(index) for index in range(episodes)]
        if self._workers:
            if not self._actors:
                kind = ray.remote(ScriptedRunner).options(num_cpus=1, max_restarts=RESTARTS)
                self._actors = {i + 1: kind.remote() for i in range(self._workers)}
            yield from play_on_actors(self._actors, specs, settings, order)
            return
        if self._local is None:
            self._local = ScriptedRunner()
        yield from self._local.play(specs, settings, order)

    def close(self) -> None:
        """See `Player.close`."""
        actors, self._actors = self._actors, {}
        local, self._local = self._local, None
        for actor in actors.values():
            ray.kill(actor)
        if local is not None:
            local.close()
