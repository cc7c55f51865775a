"""`rllib train file`: its arguments."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from rllib_minestudio.algorithms.options.listing import help_text
from rllib_minestudio.cli.argument_types import whole_number
from rllib_minestudio.cli.parser import Parser
from rllib_minestudio.errors import did_you_mean

MOST_SEEDS = 1000

SUFFIXES = (".yaml", ".yml", ".py")
"""Of experiment files."""

RLLIBS_OPTIONS = ("--run", "--algo", "--env")
"""What RLlib's own `rllib train`, which older tutorials use, takes instead of a file."""

RLLIBS_FILE_OPTIONS = ("-f", "--config-file")
"""Before a file, in its still older form."""

DESCRIPTION = """\
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
{randint: [...]}. `num_samples: 16` draws 16 times, and
`scheduler: {asha: {grace_period: 20000, max_t: 100000}}` stops trials that are behind (or
median_stopping_rule; with Tune's arguments, steps and return unless they say otherwise).
A Python file defines `config` (an AlgorithmConfig), optionally the other keys, or a complete
`tuner` (a ray.tune.Tuner).

The name of one of MineStudio's configs, such as gate_kl, is a file, too: it is looked for in
config/ here and in the installed MineStudio, and converted as by `rllib convert`.

Trust what you run: a Python file or config is executed, a YAML file imports the classes that it
names, and --resume unpickles the checkpoints of the run, which can run arbitrary code.
"""

EXAMPLES = """\
examples:
  rllib train file tuned_examples/cow.yaml
  rllib train file tuned_examples/cow.yaml --set lr=3e-4 --set model.hidden_size=64
  rllib train file tuned_examples/cow.yaml --set 'lr={grid_search: [1e-4, 3e-4]}'
  rllib train file tuned_examples/cow.yaml --seeds 3
  rllib train file tuned_examples/cow.yaml --stop training_iteration=50
  rllib train file tuned_examples/cow.yaml --resume
  rllib train file tuned_examples/cow.yaml --resume --stop time_total_s=1440 --set lr=1e-4
  rllib train file gate_kl --set model.weights=2x.weights
"""


def add_parser(parser: Parser) -> None:
    """Declare the arguments of `rllib train`."""
    parser.correction = _correction
    sources = parser.add_subparsers(dest="source", required=True, metavar="SOURCE")
    file = sources.add_parser(
        "file",
        help="train the experiments of a YAML or Python file",
        description=DESCRIPTION,
        epilog=f"{EXAMPLES}\n{help_text()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(file)
    file.set_defaults(run=_run)


def _correction(words: Sequence[str]) -> str:
    """Answer RLlib's command, and a file without `file` before it; "" for all other words."""
    if "file" in words or words[0] in ("-h", "--help"):
        return ""
    given = [name for name in RLLIBS_OPTIONS if any(w.partition("=")[0] == name for w in words)]
    if given:
        return (
            f"{' and '.join(given)} can't be given here; write an experiment file, whose keys "
            "`run` and `env` name algorithm and environment (`rllib train file --help` shows one), "
            "and train it with `rllib train file FILE`."
        )
    first = words[0]
    file = next((word for word in words if word.endswith(SUFFIXES)), None)
    if file is None and not first.startswith("-") and not did_you_mean(first, ["file"]):
        file = first  # such as cow, one of the package's examples
    if file is None:
        return ""
    options = [word for word in words if word not in (file, *RLLIBS_FILE_OPTIONS)]
    meant = shlex.join(["rllib", "train", "file", file, *options])
    return f"`file` is missing; the command is `{meant}`."


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a .yaml, .yml or .py file, or the name of an example in the package, such as cow, or "
        "of one of MineStudio's configs, such as gate_kl",
    )
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
        "--seeds",
        metavar="N",
        type=whole_number(1, MOST_SEEDS),
        help="train with N seeds, counted from the experiment's on, and draw their mean and range",
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


def _run(arguments: argparse.Namespace) -> int:
    from rllib_minestudio.cli.convert.named import experiment_file
    from rllib_minestudio.experiments.train import TrainingRequest, train

    with experiment_file(Path(arguments.file)) as (file, kept):
        return train(
            TrainingRequest(
                file=file,
                out=Path(arguments.out),
                overrides=arguments.set,
                stop=arguments.stop,
                num_samples=arguments.num_samples,
                seeds=arguments.seeds,
                save_interval=arguments.save_interval,
                resume=arguments.resume,
                address=arguments.address,
                verbose=arguments.verbose,
                kept=kept,
            )
        )
