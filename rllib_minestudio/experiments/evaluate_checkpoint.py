"""`rllib evaluate`: evaluates one or two checkpoints or agents; writes summary and recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from rllib_minestudio.checkpoints.lookup import EXPERIMENT_SUFFIXES
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.evaluation.evaluation_options import (
    PAGE_FILE,
    SUMMARY_FILE,
    EvaluationOptions,
)
from rllib_minestudio.experiments.experiment_file import load_experiments, make_importable
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
from rllib_minestudio.foundation.options import Flag, like, option, option_group
from rllib_minestudio.foundation.recording_options import AUTO, RecordingForm

if TYPE_CHECKING:
    import gymnasium as gym
    from ray.rllib.env.env_runner_group import EnvRunnerGroup

    from rllib_minestudio.algorithms import MineStudioPPOConfig
    from rllib_minestudio.evaluation.agent_runner import AgentGroup
    from rllib_minestudio.evaluation.episode import EvaluatedEpisode
    from rllib_minestudio.evaluation.policy_loading import LoadedPolicy
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
        "Change an option of the environment, by its dotted path as in `rllib train file`: "
        "`env_config.callbacks.0.JudgeReset.time_limit=300`.",
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
    from rllib_minestudio.evaluation.evaluate import environment_identity, recording_problems
    from rllib_minestudio.evaluation.reference_policy import load_prior
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


def load_policy_of(
    source: str, overrides: Sequence[str] = (), *, trust: bool = False
) -> LoadedPolicy:
    """Load the policy of a checkpoint, or the starting policy of an experiment file.

    Args:
        source: A checkpoint or a file.
        overrides: `key=value` changes of the file's experiment; ignored for a checkpoint.
        trust: Whether to do all that a checkpoint asks for, whoever wrote it.

    Raises:
        MineStudioError: There is no such policy, or it is not trusted.
    """
    from rllib_minestudio.evaluation.policy_loading import load_policy

    path = Path(source)
    if path.suffix in EXPERIMENT_SUFFIXES:
        return load_starting_policy(path, overrides)
    return load_policy(source, trust=trust)


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

    own.environment(env_config=overridden(own.env_config, request.overrides))
    return evaluation_config(
        own,
        num_env_runners=request.workers,
        num_envs=request.envs,
        num_gpus=request.gpus,
    )


def overridden(env_config: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Apply `--set` to the environment's options; paths start at `config`, as everywhere.

    Raises:
        InvalidOptionsError: An override changes another option, or cannot be applied.
    """
    from rllib_minestudio.experiments.experiment_file import parse_assignments

    merged = dict(env_config)
    for path, value in parse_assignments(overrides, "--set").items():
        option = path.removeprefix("config.")
        root, *names = option.split(".")
        if root != "env_config" or not names:
            raise InvalidOptionsError(
                f"--set {path}: an evaluation changes options of the environment only. "
                f"Write them in full, such as --set env_config.{option}=VALUE, if that is meant."
            )
        *parents, last = (int(name) if name.isdigit() else name for name in names)
        place: Any = merged
        try:
            for name in parents:
                inner = place[name]
                place[name] = inner.copy() if isinstance(inner, (dict, list)) else inner
                place = place[name]
            place[last] = value
        except (LookupError, TypeError, AttributeError) as error:
            raise InvalidOptionsError(
                f"--set {path}: the environment has no such option to change ({error})."
            ) from error
    return merged


class _Policy:
    """A policy of this package, on env runners."""

    def __init__(self, source: str, request: EvaluationRequest) -> None:
        self.policy = load_policy_of(source, trust=request.trust)
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

        self.config = _config(_config_of_env(request.env, request.trust), request)
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


def _config_of_env(source: str | None, trust: bool) -> MineStudioPPOConfig:
    """Return the config whose environment an agent plays in.

    Raises:
        MineStudioError: The source cannot be loaded.
    """
    from rllib_minestudio.algorithms import MineStudioPPOConfig
    from rllib_minestudio.algorithms.environments import ENV_NAME

    if source is not None:
        return load_policy_of(source, trust=trust).config
    return MineStudioPPOConfig().environment(ENV_NAME)


def _evaluate(player: _Policy | _Agent, options: EvaluationOptions, prior: Any) -> Summary:
    """Evaluate a player, showing progress."""
    from rllib_minestudio.evaluation.evaluate import environment_identity
    from rllib_minestudio.evaluation.evaluate import evaluate as evaluate_policy
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


# ------------------------------------------------------- the untrained policy of an experiment file
# It has the weights that training would start from.


def load_starting_policy(path: Path, overrides: Sequence[str] = ()) -> LoadedPolicy:
    """Build the policy that an experiment file describes.

    Args:
        path: A file with one experiment, without searches.
        overrides: `key=value` changes of the experiment, as in `rllib train file`.

    Raises:
        InvalidOptionsError: The file contains several experiments, a search, or wrong options.
        ExperimentFileError: The file is missing or not readable.
    """
    from rllib_minestudio.evaluation.policy_loading import (
        LoadedPolicy,
        playing_config,
        weights_digest,
    )
    from rllib_minestudio.experiments.plan import make_plan

    experiments = load_experiments(path, overrides)
    plans = [make_plan(experiment) for experiment in experiments]
    if len(plans) != 1 or plans[0].searched:
        raise InvalidOptionsError(
            f"{path}: to be evaluated, a file must hold one experiment without searches."
        )
    config = playing_config(plans[0].example)
    spaces = config.known_spaces() or _spaces_of_env(config)
    module = config.policy_class(**spaces, model_config=config.model_config)
    # All sizes in full, since the weights that may have decided them are not read again.
    config.training(model=module.model_config)
    weights = module.get_state()
    identity = {"checkpoint": str(path), "weights": weights_digest(weights)}
    return LoadedPolicy(config, weights, identity)


def _spaces_of_env(config: MineStudioPPOConfig) -> dict[str, gym.Space]:
    """Build the environment to get its spaces."""
    from rllib_minestudio.experiments.environment import make_env

    env = make_env(config)
    try:
        return {"observation_space": env.observation_space, "action_space": env.action_space}
    finally:
        env.close()
