"""`rllib train file`: its arguments."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace

from rllib_minestudio.algorithms.options import help_text
from rllib_minestudio.checkpoints.lookup import EXPERIMENT_SUFFIXES
from rllib_minestudio.cli.flags import Parser, add_flags
from rllib_minestudio.errors import did_you_mean
from rllib_minestudio.experiments.train import TrainingRequest, train

RLLIBS_OPTIONS = ("--run", "--algo", "--env")
"""Options of RLlib's own `rllib train`, in older tutorials, which takes them instead of a file."""

RLLIBS_FILE_OPTIONS = ("-f", "--config-file")
"""Options before the file in an even older form of it."""

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
    trackers: {wandb: {project: cows}}                           # docs/metrics.md

where all keys but `run` and `env` are optional. Any value below `config` may be a search space:
{grid_search: [1e-5, 1e-4]}, {choice: [...]}, {loguniform: [1e-5, 1e-4]}, {uniform: [...]},
{randint: [...]}. `num_samples: 16` draws 16 times, and
`scheduler: {asha: {grace_period: 20000, max_t: 100000}}` stops trials that are behind (or
median_stopping_rule; with Tune's arguments, steps and return unless they say otherwise).
A Python file defines `config` (an AlgorithmConfig), optionally the other keys, or a complete
`tuner` (a ray.tune.Tuner).

The name of one of MineStudio's configs, such as gate_kl, is a file, too: it is looked for in
config/ here and in the installed MineStudio, and converted as by `rllib convert`.

Trust what you run: a Python file or config is executed, a YAML file imports the classes that it
names. --resume goes on with runs of yours; those of others need --trust.
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
    """Declare `rllib train file`."""
    parser.correction = _correction
    sources = parser.add_subparsers(dest="source", required=True, metavar="SOURCE")
    file = sources.add_parser(
        "file",
        help="train the experiments of a YAML or Python file",
        description=DESCRIPTION,
        epilog=f"{EXAMPLES}\n{help_text()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_flags(file, TrainingRequest, _run)


def _correction(words: Sequence[str]) -> str:
    """Correct RLlib's own command, and a missing `file`; return "" for all other words."""
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
    file = next((word for word in words if word.endswith(EXPERIMENT_SUFFIXES)), None)
    if file is None and not first.startswith("-") and not did_you_mean(first, ["file"]):
        file = first  # such as cow, an example of this package
    if file is None:
        return ""
    options = [word for word in words if word not in (file, *RLLIBS_FILE_OPTIONS)]
    meant = shlex.join(["rllib", "train", "file", file, *options])
    return f"`file` is missing; the command is `{meant}`."


def _run(request: TrainingRequest) -> int:
    from rllib_minestudio.cli.convert.online import experiment_file

    with experiment_file(request.file) as (file, kept):
        return train(replace(request, file=file, kept=kept))
