"""Players of a benchmark: a policy, a foreign or scripted agent, or the tasks' solutions.

All meet the same worlds: an episode's world, and the random numbers of policy and agent, derive
from the benchmark's seed and the episode's index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_minestudio.benchmark.judge import JudgeTaskCallback
from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents.scripted import make_agent
from rllib_minestudio.env.agents.user_agents import AgentMaker, is_agent_path, shipped
from rllib_minestudio.env.callbacks import (
    Compose,
    MaskActionsCallback,
    TaskCallback,
    TaskFileCallback,
)
from rllib_minestudio.env.callbacks.base import declares
from rllib_minestudio.env.callbacks.builder import declaring_callbacks
from rllib_minestudio.env.callbacks.tasks import TASK_TEXT
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError, did_you_mean
from rllib_minestudio.evaluation.agent_runner import (
    TIMEOUT_S,
    AgentGroup,
    AgentOrder,
    play_episodes,
)
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from rllib_minestudio.evaluation.policy_loading import LoadedPolicy, evaluation_config
from rllib_minestudio.evaluation.request import EpisodeSpec, Played, PlaySettings
from rllib_minestudio.experiments.played_policy import (
    load_policy_of,
    overridden,
    refuse_model_changes,
)
from rllib_minestudio.foundation.names import AGENTS, RANDOM
from rllib_minestudio.foundation.options import Problems
from rllib_minestudio.foundation.values import plain
from rllib_minestudio.models.policy_registry import find_policy

SOLUTION = "solution"
"""Name of the player that plays each task's own scripted solution."""

SCRIPTED = (*AGENTS, SOLUTION)
"""Names of players other than policies and foreign agents."""

RESTARTS = 3
"""How often an actor that died is restarted."""


class BenchmarkPlayer(Protocol):
    """A player that plays tasks one after the other.

    Attributes:
        identity: Its description in results, as plain data.
        env_config: Options of its environment, which tasks complete with their world and judge.
        least_workers: Least number of processes that it needs.
    """

    identity: dict[str, Any]
    env_config: dict[str, Any]
    least_workers: int

    def unfit(self, task: BenchmarkTask) -> str | None:
        """Return why the player cannot play a task; None if it can."""

    def check(self, env_config: Mapping[str, Any]) -> None:
        """Refuse an environment that the player does not fit.

        Raises:
            MineStudioError: The player does not fit it.
        """

    def play(self, task: BenchmarkTask, episodes: int, settings: PlaySettings) -> Iterator[Played]:
        """Play episodes 0 to `episodes` - 1 of a task; yield each as it ends, in any order."""

    def close(self) -> None:
        """Close environments and processes; the next `play` starts new ones."""


def make_player(
    name: str,
    *,
    workers: int,
    envs: int,
    gpus: float | None = None,
    deterministic: bool = False,
    overrides: Sequence[str] = (),
    agent_timeout_s: float = TIMEOUT_S,
    trust: bool = False,
) -> BenchmarkPlayer:
    """Make the player with a name.

    Args:
        name: One of `SCRIPTED`, what `load_policy` takes, an experiment file, or the
            `module:function` that makes an agent, which always plays in separate processes.
        workers: Number of processes; 0 plays in this one.
        envs: Environments per process; a scripted agent plays one at a time.
        gpus: GPUs per process; None keeps the number of the policy's training.
        deterministic: Whether a policy takes its most probable actions.
        overrides: `key=value` changes of the environment's options, and of a policy's.
        agent_timeout_s: Seconds that a foreign agent may take for an action.
        trust: Whether to do all that a checkpoint asks for, whoever wrote it.

    Raises:
        MineStudioError: There is no such player, or it cannot be loaded.
    """
    if name in SCRIPTED or is_agent_path(name):
        refuse_model_changes(overrides, name)
        env_config = overridden({}, overrides)
    if name in SCRIPTED:
        if deterministic:
            raise InvalidOptionsError(
                f"--deterministic is for policies; {name!r} has no probabilities."
            )
        pickled = shipped(partial(make_agent, name), name)
        script = None if name == SOLUTION else AgentMaker(name, {}, pickled=pickled)
        return AgentPlayer(name, script, {"name": name}, AgentGroup(workers), {}, env_config)
    if is_agent_path(name):
        order = {"timeout_s": agent_timeout_s, "num_envs": envs, "gpu": bool(gpus)}
        group = AgentGroup(max(1, workers), gpus=gpus or 0.0, restarts=RESTARTS)
        agent = AgentMaker.named(name)
        identity = {**agent.identity, "name": name, "deterministic": deterministic}
        return AgentPlayer(name, agent, identity, group, order, env_config)
    try:
        policy = load_policy_of(name, overrides, trust=trust)
    except CheckpointMismatchError as error:
        hint = did_you_mean(name, SCRIPTED)
        raise CheckpointMismatchError(
            f"{error} Players without a checkpoint: {', '.join(SCRIPTED)}.{hint}"
        ) from error
    return PolicyPlayer(policy, workers, envs, gpus, deterministic)


class PolicyPlayer:
    """A policy, played by one group of `EvaluationEnvRunner`s for all tasks."""

    least_workers = 0

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
            InvalidOptionsError: It was trained in another environment than `MineStudioEnv`.
        """
        check_environment(policy.config.env)
        self._policy = policy
        self._workers, self._envs, self._gpus = workers, envs, gpus
        self._deterministic = deterministic
        self._local: EvaluationEnvRunner | None = None
        self._group: EnvRunnerGroup | None = None
        name = policy.identity["checkpoint"]
        # Besides the weights, options such as the precision decide what is played.
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
        """Return None: a policy can play every task."""
        return None

    def check(self, env_config: Mapping[str, Any]) -> None:
        """Refuse an environment with other observations than the policy's, without building it.

        Raises:
            InvalidOptionsError: The observations differ.
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

    def play(self, task: BenchmarkTask, episodes: int, settings: PlaySettings) -> Iterator[Played]:
        """See `BenchmarkPlayer.play`."""
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
        """See `BenchmarkPlayer.close`."""
        group, self._group = self._group, None
        local, self._local = self._local, None
        if group is not None:
            group.stop()
        if local is not None:
            local.stop()

    def _config(self, env_config: Mapping[str, Any]) -> Any:
        """Return the env runners' config with these options of the environment."""
        own = self._policy.config.copy(copy_frozen=False)
        own.env_config = dict(env_config)
        return evaluation_config(
            own,
            num_env_runners=self._workers,
            num_envs=self._envs,
            num_gpus=self._gpus,
        )


class AgentPlayer:
    """A scripted agent, the tasks' solutions, or a foreign agent."""

    def __init__(
        self,
        name: str,
        agent: AgentMaker | None,
        identity: Mapping[str, Any],
        group: AgentGroup,
        order: Mapping[str, Any],
        env_config: Mapping[str, Any],
    ) -> None:
        """Set up the player; nothing is started.

        Args:
            name: Name of the player.
            agent: Maker of the agent; None plays each task's solution.
            identity: Its description in results.
            group: The processes that play.
            order: Other fields of `AgentOrder`.
            env_config: Options of its environment.
        """
        self._name, self._agent = name, agent
        self._group, self._order = group, dict(order)
        self.identity = dict(identity)
        self.env_config = dict(env_config)
        self.least_workers = int(name not in SCRIPTED)  # where a hung agent can be ended

    def unfit(self, task: BenchmarkTask) -> str | None:
        """Return a reason if the task's solution is to be played and there is none."""
        if self._agent is None and task.solution is None:
            return "The package has no scripted solution for it."
        return None

    def check(self, env_config: Mapping[str, Any]) -> None:
        """Refuse other engines for scripted agents, which read the embedded engine's state.

        Raises:
            InvalidOptionsError: The agent needs the embedded engine.
        """
        engine = env_config.get("engine", VOXEL)
        if engine != VOXEL and self._name in SCRIPTED and self._name != RANDOM:
            raise InvalidOptionsError(
                f"{self._name!r} reads the embedded engine's state; with env_config.engine "
                f"{engine!r}, only policies, agents of your own and {RANDOM!r} play."
            )

    def play(self, task: BenchmarkTask, episodes: int, settings: PlaySettings) -> Iterator[Played]:
        """See `BenchmarkPlayer.play`."""
        agent = self._agent
        if agent is None:
            pickled = shipped(partial(_solution, task.solution), SOLUTION)
            agent = AgentMaker(SOLUTION, {}, pickled=pickled)
        yield from self._group.play(episodes, settings, AgentOrder(agent, **self._order))

    def close(self) -> None:
        """See `BenchmarkPlayer.close`."""
        self._group.stop()


def _solution(solution: Any, seed: int) -> Any:
    from rllib_minestudio.benchmark.solutions import SolutionAgent

    return SolutionAgent(solution, seed)


# ---------------------------------------------------- a policy's environment in the world of a task

_OF_THE_PLAYER = (
    *("engine", "action_type", "obs_size", "render_size", "sampling", "gamma", "resource_pack"),
    *("camera_config", "render_mode", "minecraft"),
)
"""Options of the policy: how it sees and acts, and in which game; all others are the task's."""

_ENVIRONMENT = ("MineStudio", MineStudioEnv.__name__)
"""Names of the environment, without module paths."""


def task_env_config(task: BenchmarkTask, env_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the environment in which a policy plays a task.

    The policy keeps the options of its observations and actions (sizes, sampling, brightness,
    camera, the engine) and those of its callbacks that mask actions or declare parts of its
    observations. The task decides the rest. The world is determined by the seed of an episode's
    reset, which always makes a new world, whatever was played before.

    Args:
        task: A task that the engine can play; see `BenchmarkTask.marks`.
        env_config: The policy's `env_config` in training, or `{}` for a scripted agent.

    Raises:
        InvalidOptionsError: The task cannot provide the policy's observations or actions, or the
            engine lacks a biome; lists all problems.
    """
    policy_callbacks = list(env_config.get("callbacks") or ())
    kept = _kept(policy_callbacks)
    room = _room_for_text(policy_callbacks)
    told = [] if room is None else [_told_task(task, room)]
    rewards = [] if task.rewards is None else [dict(task.rewards)]
    chosen: dict[str, Any] = {
        **{name: env_config[name] for name in _OF_THE_PLAYER if name in env_config},
        "preferred_spawn_biome": task.world.biomes[0],
        "callbacks": [
            *task.world.callbacks,
            *kept,
            *told,
            *rewards,
            {"JudgeReset": task.time_limit},
            JudgeTaskCallback.spec_of(task),
        ],
    }
    problems = Problems()
    _check_biomes(problems, task, chosen.get("engine", VOXEL))
    problems.raise_if_any()
    _check_fit(problems, env_config, chosen)
    problems.raise_if_any()
    return chosen


def check_tasks(
    tasks: Iterable[BenchmarkTask], env_config: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return `task_env_config` of each playable task, by the task's name.

    Args:
        tasks: The tasks; marked ones are skipped.
        env_config: As for `task_env_config`.

    Raises:
        InvalidOptionsError: The policy does not fit; a problem common to all tasks is one sentence.
    """
    found: dict[str, dict[str, Any]] = {}
    problems: dict[str, list[str]] = {}
    engine = env_config.get("engine", VOXEL)
    for task in tasks:
        if task.marks(engine):
            continue
        try:
            found[task.name] = task_env_config(task, env_config)
        except InvalidOptionsError as error:
            for problem in error.problems:
                problems.setdefault(problem, []).append(task.name)
    if problems:
        raise InvalidOptionsError(
            [
                problem if not found and len(names) > 1 else f"task {names[0]}: {problem}"
                for problem, names in problems.items()
            ]
        )
    return found


def check_environment(name: Any) -> None:
    """Refuse a policy of another environment.

    Args:
        name: `config.env` of the policy's config: a name or a class.

    Raises:
        InvalidOptionsError: It is not `MineStudioEnv`.
    """
    called = name if isinstance(name, str) else getattr(name, "__name__", str(name))
    if called.rpartition(".")[2] not in _ENVIRONMENT:
        raise InvalidOptionsError(
            f"the policy plays the environment {called!r}; tasks are played in MineStudioEnv only."
        )


def _kept(specs: list[Any]) -> list[Any]:
    """Return the specs of the callbacks that belong to a policy rather than to its task."""
    kept = []
    for spec, callback in zip(specs, declaring_callbacks(specs), strict=True):
        names_tasks = isinstance(callback, TaskCallback | TaskFileCallback | Compose)
        is_part = declares(callback) or isinstance(callback, MaskActionsCallback)
        if is_part and not names_tasks:
            kept.append(spec)
    return kept


def _room_for_text(specs: list[Any]) -> int | None:
    """Return the size of the text in the policy's observations in bytes; None without text."""
    space = MineStudioEnv.space_of({"callbacks": specs}).spaces.get(TASK_TEXT)
    return None if space is None or not space.shape else space.shape[0]


def _told_task(task: BenchmarkTask, room: int) -> dict[str, Any]:
    """Return the callback that adds the task's text to every observation.

    Raises:
        InvalidOptionsError: The text is too long.
    """
    size = len(task.text.encode())
    if size > room:
        raise InvalidOptionsError(
            f"its text has {size} bytes, and the policy's observations have room for {room} "
            f"(max_text_bytes of its Task): {task.text!r}."
        )
    return {"Task": {"task_cfg": {"name": task.name, "text": task.text}, "max_text_bytes": room}}


def _check_biomes(problems: Problems, task: BenchmarkTask, engine: str) -> None:
    """Add a problem for each biome that the embedded engine lacks."""
    if engine != VOXEL:
        return
    from rllib_minestudio.env.voxel.world.climate import BIOMES  # late: numba takes a second

    for biome in task.world.biomes:
        problems.choice("world.biomes", biome, BIOMES)


def _check_fit(
    problems: Problems, env_config: Mapping[str, Any], chosen: Mapping[str, Any]
) -> None:
    """Add problems where the task's observations differ from those of the policy's training.

    Actions cannot differ, since the policy's own options decide them.
    """
    reads = MineStudioEnv.space_of(env_config).spaces
    provided = MineStudioEnv.space_of(chosen).spaces
    for key, space in reads.items():
        if key not in provided:
            problems.messages.append(
                f"the policy reads {key!r}, which no callback of the task provides: what a Compose "
                "of its environment declares is not available elsewhere."
            )
        elif space != provided[key]:
            problems.add(f"observation {key!r}", provided[key], f"must be {space} for the policy")
    for key in provided.keys() - reads.keys():
        problems.messages.append(
            f"the task adds {key!r} to observations, which the policy does not read."
        )
