"""`rllib evaluate`: what a checkpoint is worth, with videos to watch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_minestudio.cli.console import phase, stderr, stdout
from rllib_minestudio.cli.names import make_importable
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError

if TYPE_CHECKING:
    from rllib_minestudio.evaluation.checkpoint import LoadedPolicy
    from rllib_minestudio.evaluation.compare import Comparison
    from rllib_minestudio.evaluation.options import EvaluationOptions
    from rllib_minestudio.evaluation.summary import Summary

DESCRIPTION = """\
Play whole episodes with the policy of a checkpoint and sum them up.

A fixed set of episodes is played to its end, so that short ones do not count for more. Their
worlds and the policy's random numbers derive from --seed alone: two checkpoints meet the same
worlds, and the number of workers changes nothing. A summary with the success rate, its 95 %
interval and a table per task is printed, and saved as summary.json and summary.html.

The policy is read without unpickling. Checkpoints without policy/playing.yaml (of earlier versions)
are unpickled, which executes what their writer wanted: evaluate only those that you trust.
"""

EXAMPLES = """\
examples:
  rllib evaluate CHECKPOINT --episodes 100 --filter "kill_entity:cow>=3"
  rllib evaluate CHECKPOINT --episodes 20 --record out/ --pov --overlay --only success
  rllib evaluate CHECKPOINT --workers 4 --compare OTHER_CHECKPOINT
  rllib evaluate tuned_examples/inference_vpt.yaml --episodes 20

filters: kill_entity:cow>=3, mine_block:*_ore>=1, return>5, length<100, y<12, held:*_sword,
task:hunt_*, success, function:package.module.name; combined with and, or, not and brackets
"""

EPISODES_FOLDER = "episodes"
"""Where recordings go, below the folder of the evaluation."""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rllib evaluate`."""
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help="folder of a checkpoint, or an experiment file: its weights as they are",
    )
    parser.add_argument("--episodes", metavar="N", type=int, default=20, help="default: 20")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="default: 0")
    parser.add_argument("--filter", metavar="TEXT", help="when an episode counts as a success")
    parser.add_argument(
        "--deterministic", action="store_true", help="take the most probable actions"
    )
    parser.add_argument("--max-steps", metavar="N", type=int, help="truncate longer episodes")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change an option of the environment, by its dotted path below env_config",
    )
    parser.add_argument(
        "--workers", metavar="N", type=int, default=0, help="env runners; 0 plays in this process"
    )
    parser.add_argument("--envs", metavar="N", type=int, help="environments per env runner")
    parser.add_argument("--gpus", metavar="X", type=float, help="GPUs per env runner")
    parser.add_argument(
        "--compare", metavar="OTHER", help="another checkpoint, or the folder of its evaluation"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="where the summary goes (default: --record's, or a new folder)"
    )
    _add_recorder_options(parser)
    parser.add_argument(
        "--verbose", action="store_true", help="show what Ray and its workers print"
    )
    parser.set_defaults(run=evaluate)


def _add_recorder_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--record", metavar="DIR", help="record the episodes, below DIR/episodes")
    parser.add_argument(
        "--only", default="all", help="keep recordings of: all, success, failure, best_K"
    )
    parser.add_argument(
        "--format",
        default="episodes",
        help="episodes, or for MineStudio: minestudio (as its inference) or minestudio-dataset",
    )
    parser.add_argument("--pov", action="store_true", help="record at render_size")
    parser.add_argument("--overlay", action="store_true", help="write actions and rewards on it")
    parser.add_argument(
        "--kl-to",
        metavar="WEIGHTS",
        help="record the divergence from these weights, or from the checkpoint's own: prior",
    )
    parser.add_argument("--media", default="h264", help="h264 or jpeg")
    parser.add_argument("--fps", metavar="N", type=int, default=20, help="default: 20")
    parser.add_argument(
        "--crf", metavar="N", type=int, default=23, help="quality: 0 lossless, 23 default, 51 worst"
    )


def evaluate(arguments: argparse.Namespace) -> int:
    """Run `rllib evaluate` and return the exit status.

    Raises:
        MineStudioError: The checkpoint, an option or a folder is not in order.
    """
    from rllib_minestudio.cli import ray_session
    from rllib_minestudio.cli.warmup import compile_kernels
    from rllib_minestudio.evaluation.options import EvaluationOptions

    make_importable(Path.cwd())
    folder = _folder(arguments)
    options = EvaluationOptions.from_mapping(_options(arguments, folder))
    ray_session.set_environment()
    ray_session.quieten(arguments.verbose)
    from rllib_minestudio.evaluation.compare import compare, require_same_worlds
    from rllib_minestudio.evaluation.evaluate import environment_identity
    from rllib_minestudio.evaluation.prior import load_prior
    from rllib_minestudio.evaluation.report.tables import comparison_table, summary_table
    from rllib_minestudio.evaluation.summary import Summary

    policies = [_load(arguments.checkpoint)]
    other = _other_summary(arguments.compare)
    if arguments.compare and other is None:
        policies.append(_load(arguments.compare))
    prior = load_prior(policies[0].config, policies[0].checkpoint, options.kl_to)
    configs = [_config(policy, arguments) for policy in policies]
    if other is not None:
        # Now, and not after hours of play.
        identity = environment_identity(configs[0], options)
        require_same_worlds(Summary((), options.seed, options.filter, config=identity), other)
    _writable(folder)
    if any(config.env_config.get("engine", "voxel") == "voxel" for config in configs):
        compile_kernels()
    summaries: list[Summary] = []
    with ray_session.ray_session(max(1, arguments.workers), arguments.verbose):
        for policy, config in zip(policies, configs, strict=True):
            summaries.append(_evaluate(policy, config, options, prior))
            options, prior = (
                replace(options, record=None, kl_to=None),
                None,
            )  # only the first is filmed
            _save(summaries[0], folder)  # before anything else can go wrong
    summaries += [] if other is None else [other]
    stdout.print(summary_table(summaries[0]))
    compared = None
    if len(summaries) > 1:
        a, b = summaries
        compared = (b, compare(a, b))
        stdout.print(comparison_table(a, *compared))
    return _report(summaries[0], folder, compared)


def _save(summary: Summary, folder: Path) -> None:
    """Save the numbers of an evaluation.

    Raises:
        MineStudioError: The disk is full, or gone; says what they were.
    """
    try:
        summary.save(folder / "summary.json")
    except OSError as error:
        from rllib_minestudio.evaluation.report.tables import summary_table

        stdout.print(summary_table(summary))
        raise MineStudioError(
            f"The summary could not be saved to {str(folder)!r}: {error.strerror or error}. Its "
            "numbers are above."
        ) from error


def _load(source: str) -> LoadedPolicy:
    """Load the policy of a checkpoint, or the one that an experiment file starts from."""
    from rllib_minestudio.cli.starting_policy import EXPERIMENT_SUFFIXES, load_starting_policy
    from rllib_minestudio.evaluation.checkpoint import load_policy

    path = Path(source)
    return load_starting_policy(path) if path.suffix in EXPERIMENT_SUFFIXES else load_policy(path)


def _folder(arguments: argparse.Namespace) -> Path:
    """Return the evaluation's folder, which must not hold another one."""
    chosen = arguments.out or arguments.record
    folder = Path(chosen or Path("evaluations") / datetime.now().strftime("%Y-%m-%d_%H-%M-%S"))
    if (folder / "summary.json").exists():
        raise MineStudioError(
            f"{str(folder)!r} holds an evaluation already: choose another folder with --out or "
            "--record, or remove it."
        )
    return folder


def _writable(folder: Path) -> None:
    """Find out now, and not after the last episode, whether results can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise MineStudioError(
            f"{str(folder)!r} cannot be written to: {error.strerror}. Choose another folder with "
            "--out or --record."
        ) from error


def _options(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the options as `EvaluationOptions` wants them."""
    names = ("episodes", "seed", "filter", "deterministic", "max_steps", "only", "kl_to")
    options = {name: getattr(arguments, name) for name in names}
    if arguments.record:
        options["record"] = {
            "folder": str(Path(arguments.record).resolve() / EPISODES_FOLDER),
            "format": arguments.format,
            "source": "pov" if arguments.pov else "observation",
            "overlay": arguments.overlay,
            "media": arguments.media,
            "fps": arguments.fps,
            "crf": arguments.crf,
        }
    return options


def _other_summary(path: str | None) -> Summary | None:
    """Return the summary in the folder to compare with; None if it is a checkpoint."""
    from rllib_minestudio.evaluation.summary import Summary

    if path is None or not (Path(path) / "summary.json").is_file():
        return None
    return Summary.load(path)


def _config(policy: LoadedPolicy, arguments: argparse.Namespace) -> Any:
    """Return the config to evaluate with; checks everything that can be wrong with it."""
    from rllib_minestudio.evaluation.checkpoint import evaluation_config

    for name, least in (("workers", 0), ("envs", 1)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise InvalidOptionsError(f"--{name} is {value}: it must be at least {least}.")
    policy.config.environment(env_config=_overridden(policy.config.env_config, arguments.set))
    return evaluation_config(
        policy.config,
        num_env_runners=arguments.workers,
        num_envs=arguments.envs,
        num_gpus=arguments.gpus,
    )


def _overridden(env_config: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Lay `--set` over the environment's options; `env_config.` before a path may be left out."""
    from rllib_minestudio.cli.experiment import parse_assignments

    merged = dict(env_config)
    for path, value in parse_assignments(overrides, "--set").items():
        names = path.removeprefix("env_config.").split(".")
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


def _evaluate(policy: LoadedPolicy, config: Any, options: EvaluationOptions, prior: Any) -> Summary:
    """Evaluate one policy, showing how far it is."""
    from ray.rllib.env.env_runner_group import EnvRunnerGroup

    from rllib_minestudio.evaluation.evaluate import environment_identity
    from rllib_minestudio.evaluation.evaluate import evaluate as evaluate_policy

    group = EnvRunnerGroup(config=config, local_env_runner=config.num_env_runners == 0)
    done, successes = 0, 0
    try:
        with phase(f"evaluating {policy.identity['checkpoint']}") as show:

            def note(episode: Any) -> None:
                nonlocal done, successes
                done += 1
                successes += episode.counts_as_success
                show(f"episode {done} of {options.episodes}, {successes} successes")

            return evaluate_policy(
                group,
                options,
                weights=policy.weights,
                prior=prior,
                policy=policy.identity,
                config=environment_identity(config, options),
                on_episode=note,
            )
    finally:
        group.stop()


def _report(summary: Summary, folder: Path, compared: tuple[Summary, Comparison] | None) -> int:
    """Save the summary and say what went wrong; returns the exit status."""
    from rllib_minestudio.evaluation.report.page import write_page

    problems = [f"episode {e.index} could not be played: {e.error}" for e in summary.failures]
    problems += sorted({e.recording_error for e in summary.episodes if e.recording_error})
    try:
        write_page(summary, folder / "summary.html", compared)
        if compared is not None:
            compared[1].save(folder / "comparison.json")
        stdout.print(f"summary: {folder / 'summary.json'}, {folder / 'summary.html'}")
    except OSError as error:
        problems.append(f"The page could not be saved: {error}")
    recorded = sum(episode.recording is not None for episode in summary.episodes)
    if recorded:
        stdout.print(f"recordings: {recorded} below {folder / EPISODES_FOLDER}")
    for problem in problems:
        stderr.print(f"error: {problem}", style="red", markup=False)
    return 1 if problems else 0
