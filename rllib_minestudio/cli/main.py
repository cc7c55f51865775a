"""The `rllib` command line."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rllib_minestudio.cli import checkpoint, convert, doctor, engine, evaluate, model, play, record
from rllib_minestudio.cli.console import stderr
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError

BAD_INPUT = 2
"""Exit status for anything the user can put right, as argparse has it."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

DESCRIPTION = """\
Train agents in Minecraft with Ray RLlib.

  rllib train file tuned_examples/cow.yaml    an agent learns to hunt cows
  rllib evaluate CHECKPOINT --record out/     how good it is, with videos
  rllib COMMAND --help                        what a command does, with examples
"""

TRAIN_DESCRIPTION = """\
Train the experiments of a file with Ray Tune.

A YAML file has the layout

  cow:                                # name of the results folder
    run: MineStudioPPO                # the algorithm
    env: MineStudioEnv                # the environment
    stop: {time_total_s: 800}         # the first criterion reached ends the run
    config:                           # the algorithm's options
      lr: 1e-4
      env_config: {obs_size: [64, 64]}
    checkpoint_config: {save_interval: 10, keep_interval: 100}   # docs/checkpoints.md
    record_video_interval: 100        # iterations between two videos of the agent
    trackers: {wandb: {project: cows}}                           # docs/trackers.md

where all but `run` and `env` may be left out. Any value below `config` may be a search space:
{grid_search: [1e-5, 1e-4]}, {choice: [...]}, {loguniform: [1e-5, 1e-4]}, {uniform: [...]},
{randint: [...]}.
A Python file defines `config` (an AlgorithmConfig), optionally the other keys, or a complete
`tuner` (a ray.tune.Tuner).
"""

TRAIN_EXAMPLES = """\
examples:
  rllib train file tuned_examples/cow.yaml
  rllib train file tuned_examples/cow.yaml --set lr=3e-4 --set model.hidsize=64
  rllib train file tuned_examples/cow.yaml --set 'lr={grid_search: [1e-4, 3e-4]}'
  rllib train file tuned_examples/cow.yaml --stop training_iteration=50
  rllib train file tuned_examples/cow.yaml --resume
  rllib train file tuned_examples/cow.yaml --resume --stop time_total_s=1440 --set lr=1e-4
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = _parser(argparse.ArgumentParser, prog="rllib", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    train = _parser(
        commands.add_parser, "train", help="train agents", description=TRAIN_DESCRIPTION
    )
    sources = train.add_subparsers(dest="source", required=True, metavar="SOURCE")
    file = _parser(
        sources.add_parser,
        "file",
        help="train the experiments of a YAML or Python file",
        description=TRAIN_DESCRIPTION,
        epilog=TRAIN_EXAMPLES,
    )
    _add_train_options(file)
    file.set_defaults(run=_train)
    warmup = _parser(
        commands.add_parser,
        "warmup",
        help="compile the embedded engine, once per machine",
        description="Compile the embedded engine's kernels. Training does it by itself when "
        "needed;\nthis command does it ahead of time, for instance when an image is built.",
    )
    warmup.set_defaults(run=_warmup)
    play.add_parser(
        _parser(
            commands.add_parser,
            "play",
            help="watch an agent play a task",
            description=play.DESCRIPTION,
            epilog=play.EXAMPLES,
        )
    )
    evaluate.add_parser(
        _parser(
            commands.add_parser,
            "evaluate",
            help="measure what a checkpoint is worth, and record it",
            description=evaluate.DESCRIPTION,
            epilog=evaluate.EXAMPLES,
        )
    )
    convert.add_parser(
        _parser(
            commands.add_parser,
            "convert",
            help="translate a MineStudio config into an experiment file",
            description=convert.DESCRIPTION,
            epilog=convert.EXAMPLES,
        )
    )
    doctor.add_parser(
        _parser(
            commands.add_parser,
            "doctor",
            help="say what works on this machine, and how to fix the rest",
            description=doctor.DESCRIPTION,
            epilog=doctor.EXAMPLES,
        )
    )
    record.add_parser(
        _parser(
            commands.add_parser,
            "record",
            help="record demonstrations of a scripted agent",
            description=record.DESCRIPTION,
            epilog=record.EXAMPLES,
        )
    )
    engine.add_parser(
        _parser(
            commands.add_parser,
            "engine",
            help="let MineStudio's package play on the embedded engine",
            description=engine.DESCRIPTION,
            epilog=engine.EXAMPLES,
        )
    )
    checkpoint.add_parser(
        _parser(
            commands.add_parser,
            "checkpoint",
            help="list checkpoints, or say what one was made with",
            description=checkpoint.DESCRIPTION,
            epilog=checkpoint.EXAMPLES,
        )
    )
    model.add_parser(
        _parser(
            commands.add_parser,
            "model",
            help="look into weights, or convert them",
            description=model.DESCRIPTION,
            epilog=model.EXAMPLES,
        )
    )
    return parser


def _parser(
    make: Callable[..., argparse.ArgumentParser], *names: str, **options: Any
) -> argparse.ArgumentParser:
    """Make a parser that keeps the line breaks of its texts."""
    return make(*names, formatter_class=argparse.RawDescriptionHelpFormatter, **options)


def _add_train_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rllib train file`."""
    parser.add_argument("file", metavar="FILE", help="a .yaml, .yml or .py file")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set an option below `config`, by its dotted path; repeatable. Values are YAML, "
        "list elements go by number: env_config.callbacks.0.JudgeReset.time_limit=300",
    )
    parser.add_argument(
        "--stop",
        metavar="METRIC=VALUE",
        action="append",
        default=[],
        help="add or change a stop criterion: training_iteration, time_total_s, "
        "num_env_steps_sampled_lifetime, env_runners/episode_return_mean, or any other of "
        "docs/metrics.md; repeatable",
    )
    parser.add_argument(
        "--num-samples",
        metavar="N",
        type=int,
        help="repeat the search space N times (default: the file's, else 1)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the newest run of this experiment in --out from its last checkpoint, with "
        "the options it was started with; --set and --stop change them",
    )
    parser.add_argument(
        "--save-interval",
        "--checkpoint-freq",
        metavar="N",
        type=int,
        help="save a checkpoint every N iterations (default: the file's, else 10)",
    )
    parser.add_argument(
        "--out", metavar="DIR", default="results", help="results folder (default: ./results)"
    )
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="train on the Ray cluster there (`auto`: the one that this machine belongs to) "
        "instead of on this machine only",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="show what Ray and its workers print"
    )


# Each command imports what it needs when it runs, so that `--help` is quick.


def _train(arguments: argparse.Namespace) -> int:
    from rllib_minestudio.cli.train import train

    return train(arguments)


def _warmup(arguments: argparse.Namespace) -> int:
    from rllib_minestudio.cli.warmup import warmup

    return warmup()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: Words after `rllib`; None takes them from the process.
    """
    parsed = build_parser().parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
        return status
    except InvalidOptionsError as error:
        for problem in error.problems:
            stderr.print(f"error: {problem}", style="red", markup=False)
        return BAD_INPUT
    except MineStudioError as error:
        stderr.print(f"error: {error}", style="red", markup=False)
        return BAD_INPUT
    except KeyboardInterrupt:
        stderr.print("interrupted")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
