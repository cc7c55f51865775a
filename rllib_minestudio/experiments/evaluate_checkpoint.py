"""`rllib evaluate`, `rllib play` and what `rllib record` is asked for: requests, and playing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints.lookup import BEST, LATEST
from rllib_minestudio.errors import (
    InvalidOptionsError,
    MineStudioError,
    RecordingError,
    did_you_mean,
)
from rllib_minestudio.evaluation.episode import LARGEST_SEED
from rllib_minestudio.evaluation.evaluation_options import (
    PAGE_FILE,
    SUMMARY_FILE,
    EvaluationOptions,
)
from rllib_minestudio.experiments.experiment_file import load_experiments, make_importable
from rllib_minestudio.experiments.played_policy import (
    TaskPolicy,
    is_experiment_file,
    load_policy_of,
    of_environment,
    overridden,
    refuse_model_changes,
    task_of,
    task_policy,
)
from rllib_minestudio.experiments.ray_session import quieten, set_environment
from rllib_minestudio.foundation.console import (
    clock,
    counted,
    episodes_so_far,
    phase,
    print_next,
    quoted,
    stderr,
    stdout,
)
from rllib_minestudio.foundation.files import require_room, sole_use
from rllib_minestudio.foundation.names import AGENTS, HUNTER, POV
from rllib_minestudio.foundation.options import MANY, Flag, broken_rule, like, option, option_group
from rllib_minestudio.foundation.recording_options import AUTO, RecordingForm

if TYPE_CHECKING:
    import gymnasium as gym
    from ray.rllib.env.env_runner_group import EnvRunnerGroup

    from rllib_minestudio.algorithms import MineStudioPPOConfig
    from rllib_minestudio.env.agents.user_agents import AgentMaker
    from rllib_minestudio.evaluation.agent_runner import AgentGroup
    from rllib_minestudio.evaluation.episode import EvaluatedEpisode
    from rllib_minestudio.evaluation.inference import ActionChooser
    from rllib_minestudio.evaluation.summary import PairedComparison, Summary

LARGEST_SUMMARY = 256 * 1024
"""Bytes that must be free at the start, for a summary and its page."""

MOST_PROCESSES = 10_000
"""Upper limit of env runners, environments per env runner, and GPUs."""

EPISODES_FOLDER = "episodes"
"""Subfolder for recordings."""


@dataclass(frozen=True, kw_only=True)
class FilmedForm(RecordingForm):
    """The form of recordings by `rllib evaluate`."""

    source: str = like(RecordingForm, "source", default=AUTO)


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """A request to evaluate: what plays, options, and output folders."""

    checkpoint: str = option(
        MISSING, "What plays, see above.", Flag("CHECKPOINT", is_positional=True)
    )
    options: Mapping[str, Any] = option_group(
        EvaluationOptions, "What is played and kept.", without=("max_attempts", "record")
    )
    overrides: tuple[str, ...] = option(
        (),
        "Change an option of the environment or of the policy, by its dotted path as in `rllib "
        "train file`: `env_config.callbacks.0.JudgeReset.time_limit=300`. Of an experiment file's "
        "policy, all options can be changed (`model.weights=PATH`); of a checkpoint's, only those "
        "of acting (`model.temperature=0.8`).",
        Flag("KEY=VALUE", names=("--set",)),
    )
    workers: int = option(0, "Env runners; 0 plays in this process.", most=MOST_PROCESSES)
    envs: int | None = option(None, "Environments per env runner.", least=1, most=MOST_PROCESSES)
    gpus: float | None = option(None, "GPUs per env runner.", most=MOST_PROCESSES)
    env: str | None = option(
        None,
        "For MODULE:FUNCTION: the experiment file or checkpoint whose environment it plays in. "
        "Default: ours, with --set alone.",
        Flag("SOURCE"),
    )
    agent_timeout_s: float = option(
        60.0,
        "Seconds that MODULE:FUNCTION's agent may take over an action.",
        Flag("S", names=("--agent-timeout",)),
        least=1e-300,
        most=1e9,
        wording="positive seconds, at most 1e9",
    )
    compare: str | None = option(
        None, "Another checkpoint, or the folder of its evaluation.", Flag("OLD")
    )
    out: str | None = option(
        None, "Where the summary goes. Default: --record's, or a new folder.", Flag("DIR")
    )
    record: str | None = option(None, "Record the episodes, below DIR/episodes.", Flag("DIR"))
    form: Mapping[str, Any] = option_group(
        FilmedForm, "How recordings are made.", without=("preset",)
    )
    trust: bool = option(
        False,
        "Import the classes and use the paths that a checkpoint from elsewhere names. What your "
        "own runs saved needs no flag.",
    )
    verbose: bool = option(False, "Show what Ray and its workers print.")
    quiet: bool = option(False, "Print results, warnings and errors only.")


def evaluate_checkpoint(request: EvaluationRequest) -> int:
    """Evaluate a checkpoint, print and save its summary, and return the exit status.

    Raises:
        MineStudioError: The checkpoint, an option or a folder is invalid.
    """
    from rllib_minestudio.experiments import ray_session
    from rllib_minestudio.experiments.ray_session import compile_kernels

    make_importable(Path.cwd())
    folder = _folder(request)
    options = EvaluationOptions.from_mapping(_options(request))
    ray_session.set_environment()
    ray_session.quieten(request.verbose)
    from rllib_minestudio.algorithms.environments import is_embedded
    from rllib_minestudio.evaluation.aggregates import return_aggregates
    from rllib_minestudio.evaluation.during_training import environment_identity, recording_problems
    from rllib_minestudio.evaluation.env_runner import load_prior
    from rllib_minestudio.evaluation.report import comparison_table, summary_table
    from rllib_minestudio.evaluation.summary import Summary, compare, require_same_worlds

    players = [_player(request.checkpoint, request)]
    other = _other_summary(request.compare)
    if request.compare and other is None:
        players.append(_player(request.compare, request))
    prior = None
    if isinstance(players[0], _Policy):
        policy = players[0].policy
        prior = load_prior(policy.config, policy.checkpoint, options.kl_to)
    elif options.kl_to is not None:
        raise InvalidOptionsError("--kl-to is for policies: agents report no probabilities.")
    if problems := recording_problems(players[0].config, options):
        raise InvalidOptionsError(problems)
    identities = [environment_identity(player.config, options) for player in players]
    met = [Summary((), options.seed, options.filter, config=i) for i in identities]
    met += [] if other is None else [other]
    if len(met) > 1:
        require_same_worlds(*met)  # before hours of play
    require_room(folder, LARGEST_SUMMARY, "--out or --record")  # before the first episode
    if any(is_embedded(p.config.env, p.config.env_config) for p in players):
        compile_kernels()
    summaries: list[Summary] = []
    with sole_use(folder), ray_session.ray_session(max(1, request.workers), request.verbose):
        for player in players:
            summaries.append(_evaluate(player, options, prior))
            _save(summaries[0], folder)  # before anything else can go wrong
            # Only the first is recorded.
            options, prior = replace(options, record=None, kl_to=None), None
    summaries += [] if other is None else [other]
    stdout.print(summary_table(summaries[0]))
    compared = None
    if len(summaries) > 1:
        new, old = summaries
        compared = (old, compare(new, old))
        stdout.print(comparison_table(new, *compared))
        if aggregates := return_aggregates(new, old):
            stdout.print()
            stdout.print(aggregates.table())
    return _report(summaries[0], folder, compared)


def _save(summary: Summary, folder: Path) -> None:
    """Save a summary; if that fails, print its numbers.

    Raises:
        MineStudioError: It cannot be written, for example because the disk is full.
    """
    try:
        summary.save(folder / SUMMARY_FILE)
    except OSError as error:
        from rllib_minestudio.evaluation.report import summary_table

        stdout.print(summary_table(summary))
        raise MineStudioError(
            f"The summary could not be saved to {str(folder)!r}: {error.strerror or error}. Its "
            "numbers are above."
        ) from error


def _folder(request: EvaluationRequest) -> Path:
    """Return the evaluation's folder, which must not contain another evaluation."""
    chosen = request.out or request.record
    folder = Path(chosen or Path("evaluations") / datetime.now().strftime("%Y-%m-%d_%H-%M-%S"))
    if (folder / SUMMARY_FILE).exists():
        raise MineStudioError(
            f"{str(folder)!r} holds an evaluation already: choose another folder with --out or "
            "--record, or remove it."
        )
    return folder


def _options(request: EvaluationRequest) -> dict[str, Any]:
    """Return the options for `EvaluationOptions`, with the recorder's options and folder."""
    if not request.record:
        return dict(request.options)
    folder = Path(request.record).resolve() / EPISODES_FOLDER
    return {**request.options, "record": {**request.form, "folder": str(folder)}}


def _other_summary(path: str | None) -> Summary | None:
    """Return the summary in the folder to compare with; None if the path is a checkpoint."""
    from rllib_minestudio.evaluation.summary import Summary

    if path is None or not (Path(path) / SUMMARY_FILE).is_file():
        return None
    return Summary.load(path)


def _config(own: MineStudioPPOConfig, request: EvaluationRequest) -> Any:
    """Return the validated config to evaluate with."""
    from rllib_minestudio.evaluation.policy_loading import evaluation_config

    return evaluation_config(
        own,
        num_env_runners=request.workers,
        num_envs=request.envs,
        num_gpus=request.gpus,
    )


class _Policy:
    """A policy of this package, on env runners."""

    def __init__(self, source: str, request: EvaluationRequest) -> None:
        self.policy = load_policy_of(source, _changes(source, request), trust=request.trust)
        self.config = _config(self.policy.config, request)
        self.identity = self.policy.identity

    def start(self) -> EnvRunnerGroup:
        """Start the processes that play."""
        from ray.rllib.env.env_runner_group import EnvRunnerGroup

        return EnvRunnerGroup(config=self.config, local_env_runner=self.config.num_env_runners == 0)

    def arguments(self, prior: Any) -> dict[str, Any]:
        """Return further arguments of `evaluate`."""
        return {"weights": self.policy.weights, "prior": prior}


class _Agent:
    """A foreign agent, in its own processes."""

    def __init__(self, path: str, request: EvaluationRequest) -> None:
        from ray.rllib.env.env_context import EnvContext

        from rllib_minestudio.algorithms.environments import is_minestudio, resolve_env
        from rllib_minestudio.env.agents.user_agents import AgentMaker, shipped
        from rllib_minestudio.evaluation.agent_runner import AgentOrder

        self.config = _config(_config_of_env(path, request), request)
        agent = AgentMaker.named(path)
        env = None
        if not is_minestudio(self.config.env):
            context = EnvContext(dict(self.config.env_config), worker_index=0)
            env = shipped(partial(resolve_env(self.config.env), context), "--env")
        gpus = request.gpus or 0.0
        self._order = AgentOrder(
            agent,
            env,
            timeout_s=request.agent_timeout_s,
            num_envs=request.envs or 1,
            gpu=gpus > 0,
            trust=request.trust,
        )
        self._workers, self._gpus = max(1, request.workers), gpus
        self.identity = dict(agent.identity)

    def start(self) -> AgentGroup:
        """Start the processes that play."""
        from rllib_minestudio.evaluation.agent_runner import AgentGroup

        return AgentGroup(self._workers, gpus=self._gpus)

    def arguments(self, prior: Any) -> dict[str, Any]:
        """Return further arguments of `evaluate`."""
        return {"agent": self._order, "env_config": dict(self.config.env_config)}


def _player(source: str, request: EvaluationRequest) -> _Policy | _Agent:
    """Return the checked player of a name.

    Raises:
        MineStudioError: There is no such player, or an option does not fit it.
    """
    from rllib_minestudio.env.agents.user_agents import is_agent_path

    if is_agent_path(source):
        return _Agent(source, request)
    if request.env is not None and not is_agent_path(request.checkpoint):
        raise InvalidOptionsError(
            f"--env {request.env}: {source!r} plays in the environment that it was trained in, "
            "with --set to change it; --env is for agents of your own."
        )
    return _Policy(source, request)


def _config_of_env(agent: str, request: EvaluationRequest) -> MineStudioPPOConfig:
    """Return the config whose environment an agent plays in.

    Raises:
        MineStudioError: The source cannot be loaded, or an option does not fit it.
    """
    from rllib_minestudio.algorithms import MineStudioPPOConfig
    from rllib_minestudio.algorithms.environments import ENV_NAME

    source = request.env
    if source is not None:
        return load_policy_of(source, _changes(source, request), trust=request.trust).config
    changes = _changes(agent, request)
    refuse_model_changes(changes, agent)
    return MineStudioPPOConfig().environment(ENV_NAME, env_config=overridden({}, changes))


def _changes(source: str, request: EvaluationRequest) -> Sequence[str]:
    """Return the changes that are meant for one of the sources of a request.

    Changes of a policy are meant for experiment files, if there are any: for a checkpoint that
    is compared with them, `model.weights` would make no sense.
    """
    named = (request.checkpoint, request.compare, request.env)
    if is_experiment_file(source) or not any(map(is_experiment_file, named)):
        return request.overrides
    return of_environment(request.overrides)


def _evaluate(player: _Policy | _Agent, options: EvaluationOptions, prior: Any) -> Summary:
    """Evaluate a player, showing progress."""
    from rllib_minestudio.evaluation.during_training import environment_identity
    from rllib_minestudio.evaluation.during_training import evaluate as evaluate_policy
    from rllib_minestudio.evaluation.report import short_name

    group = player.start()
    try:
        limit = f"at most {counted(options.max_steps, 'step')} each"
        with phase(f"evaluating {short_name(player.identity)}, {limit}") as show:
            shown = _Progress(show, options.episodes)
            return evaluate_policy(
                group,
                options,
                policy=player.identity,
                config=environment_identity(player.config, options),
                on_episode=shown.note,
                on_steps=shown.note_steps,
                **player.arguments(prior),
            )
    finally:
        group.stop()


class _Progress:
    """Shows how many episodes and steps have been played, and how long the rest will take.

    Args:
        show: Shows a message.
        total: The number of episodes.
    """

    def __init__(self, show: Callable[[str], None], total: int) -> None:
        self._show, self._total = show, total
        self._done, self._successes, self._steps = 0, 0, 0
        self._started = monotonic()

    def note(self, episode: EvaluatedEpisode) -> None:
        """Count an episode that has ended."""
        self._done += 1
        self._successes += episode.counts_as_success
        self._tell()

    def note_steps(self, steps: int) -> None:
        """Count environment steps."""
        self._steps += steps
        self._tell()

    def _tell(self) -> None:
        told = episodes_so_far(self._done, self._total, self._successes, self._steps)
        if self._done:
            seconds = (monotonic() - self._started) * (self._total / self._done - 1.0)
            told += f", {clock(seconds)} left"
        self._show(told)


def _report(
    summary: Summary, folder: Path, compared: tuple[Summary, PairedComparison] | None
) -> int:
    """Save the page, print files and problems, and return the exit status."""
    from rllib_minestudio.evaluation.report import write_page

    problems = [f"episode {e.index} could not be played: {e.error}" for e in summary.failures]
    problems += sorted({e.recording_error for e in summary.episodes if e.recording_error})
    try:
        write_page(summary, folder / PAGE_FILE, compared)
        if compared is not None:
            compared[1].save(folder / "comparison.json")
        stdout.print(f"summary: {folder / SUMMARY_FILE}, {folder / PAGE_FILE}")
    except OSError as error:
        problems.append(f"The page could not be saved: {error}")
    recorded = sum(episode.recording is not None for episode in summary.episodes)
    if recorded:
        stdout.print(f"recordings: {recorded} below {folder / EPISODES_FOLDER}")
    for problem in problems:
        stderr.print(f"error: {problem}", style="red", markup=False)
    if compared is None and not problems:
        command = f"rllib evaluate CHECKPOINT --compare {quoted(folder)}"
        print_next({command: "another checkpoint in the same worlds"})
    return 1 if problems else 0


# ----------- `rllib play`: a scripted agent, a policy or a foreign agent plays an experiment's task

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
    from rllib_minestudio.evaluation.inference import play_episodes, step_messages
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
    from rllib_minestudio.evaluation.inference import Policy, ScriptedPolicy

    if isinstance(agent, TaskPolicy):
        return Policy(agent.load(env), deterministic=deterministic, seed=seed)
    return ScriptedPolicy(make_agent(agent, seed=seed), env)


# -------------------------------------------------------------------- the options of `rllib record`
# Separate from `recording_order.py`, which carries the request out and imports Ray and torch.

NOVICE_STEPS = 300
"""Default of the most steps that a novice plays."""


@dataclass(frozen=True, kw_only=True)
class RecordingRequest:
    """A request for demonstrations: agent, task, number of episodes, and output folder."""

    task: Path = option(
        MISSING, "An experiment file with one experiment.", Flag("TASK", is_positional=True)
    )
    agent: str = option(HUNTER, "Who plays.", Flag("NAME|MODULE:FUNCTION"))
    prey: tuple[str, ...] = option(
        (),
        "What a hunter hunts where the task names no prey: cow, sheep, pig, chicken. Default: all.",
        Flag("ANIMAL", takes_several=True),
    )
    make: str | None = option(
        None,
        "What a toolmaker makes where the task does not say, stone_pickaxe for example. Default: "
        "iron_pickaxe.",
        Flag("ITEM"),
    )
    episodes: int = option(MISSING, "Number of episodes.", least=1, most=MANY)
    out: Path = option(MISSING, "Output folder.", Flag("DIR"))
    overrides: tuple[str, ...] = like(
        EvaluationRequest,
        "overrides",
        sentence="Change an option of the task's environment, or of the policy that is to learn "
        "from the recordings and decides how frames are made, by its dotted path: "
        "`env_config.callbacks.5.JudgeReset.time_limit=300`, `model.weights=PATH`.",
    )
    seed: int = like(PlayRequest, "seed", sentence="Seed of the first episode.", flag=Flag("SEED"))
    workers: int | None = like(
        EvaluationRequest,
        "workers",
        default=None,
        sentence="Processes that play. Default: one per CPU.",
        least=1,
    )
    format: str = like(RecordingForm, "format")
    crf: int = like(RecordingForm, "crf", default=0)
    snapshot_interval: int = like(RecordingForm, "snapshot_interval")
    novice: str | None = option(
        None,
        "A policy that plays the beginning of every episode until the agent takes over, such as a "
        "clone that is to learn to put its own mistakes right (DAgger); only the agent's steps are "
        "imitated.",
        Flag("POLICY"),
    )
    novice_steps: int | None = option(
        None,
        "Most steps that a novice plays, drawn for each episode. Default with --novice: "
        f"{NOVICE_STEPS}.",
        least=1,
        most=LARGEST_SEED,
    )
    trust: bool = like(EvaluationRequest, "trust")
    quiet: bool = like(EvaluationRequest, "quiet")
