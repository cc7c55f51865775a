"""`rllib evaluate`: its arguments."""

from __future__ import annotations

import argparse
from typing import Any

from rllib_minestudio.checkpoints.lookup import HELP
from rllib_minestudio.cli.argument_types import add_agent_timeout
from rllib_minestudio.cli.deterministic import add_deterministic, warn_if_deterministic

DESCRIPTION = f"""\
Play whole episodes with the policy of a checkpoint and sum them up.

A fixed set of episodes is played to its end, so that short ones do not count for more. Their
worlds and the policy's random numbers derive from --seed alone: two checkpoints meet the same
worlds, and the number of workers changes nothing. A summary with the success rate, its 95 %
interval and a table per task is printed, and saved as summary.json and summary.html.

The policy is read without unpickling. Checkpoints without policy/playing.yaml, as where options of
the environment are objects, are unpickled, which can run arbitrary code: evaluate only those that
you trust.

{HELP}\
  FILE                        an experiment file: the weights that training would start from, such
                              as those of MineStudio or OpenAI
  MODULE:FUNCTION             a function that makes an agent of your own (docs/agents.md): its
                              module is imported, and so is run; it plays in processes of its own
"""

EXAMPLES = """\
examples:
  rllib evaluate results/cow/best --episodes 100 --filter "kill_entity:cow>=3"
  rllib evaluate package:hunter_nano --episodes 20 --record out/ --overlay --only success
  rllib evaluate CHECKPOINT --workers 4 --compare OLD_CHECKPOINT
  rllib evaluate tuned_examples/inference_vpt.yaml --episodes 20
  rllib evaluate my_module:make_agent --env tuned_examples/cow.yaml --workers 2

filters: kill_entity:cow>=3, mine_block:*_ore>=1, return>5, length<100, y<12, held:*_sword,
task:hunt_*, success, function:package.module.name; combined with and, or, not and brackets
"""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rllib evaluate`."""
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help="what plays, see above",
    )
    parser.add_argument(
        "--episodes", metavar="N", type=int, default=20, help="how many are played (default: 20)"
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=int,
        default=0,
        help="of their worlds and the policy (default: 0)",
    )
    parser.add_argument("--filter", metavar="TEXT", help="when an episode counts as a success")
    add_deterministic(parser)
    parser.add_argument("--max-steps", metavar="N", type=int, help="truncate longer episodes")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change an option of the environment, by its dotted path as in `rllib train file`: "
        "env_config.callbacks.0.JudgeReset.time_limit=300",
    )
    parser.add_argument(
        "--workers", metavar="N", type=int, default=0, help="env runners; 0 plays in this process"
    )
    parser.add_argument("--envs", metavar="N", type=int, help="environments per env runner")
    parser.add_argument("--gpus", metavar="X", type=float, help="GPUs per env runner")
    parser.add_argument(
        "--env",
        metavar="SOURCE",
        help="for MODULE:FUNCTION: the experiment file or checkpoint whose environment it plays in "
        "(default: ours, with --set alone)",
    )
    add_agent_timeout(parser)
    parser.add_argument(
        "--compare", metavar="OLD", help="another checkpoint, or the folder of its evaluation"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="where the summary goes (default: --record's, or a new folder)"
    )
    _add_recorder_options(parser)
    parser.add_argument(
        "--verbose", action="store_true", help="show what Ray and its workers print"
    )
    parser.set_defaults(run=_run)


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
    parser.add_argument(
        "--source",
        default="auto",
        help="what is recorded: pov, frames at render_size, or observation, those that the policy "
        "sees, for cloning (default: auto, which is pov if the environment renders)",
    )
    parser.add_argument("--overlay", action="store_true", help="write actions and rewards on it")
    parser.add_argument(
        "--kl-to",
        metavar="WEIGHTS",
        help="record the divergence from these weights, or from the checkpoint's own: prior",
    )
    parser.add_argument("--media", default="h264", help="h264 or jpeg")
    parser.add_argument(
        "--fps", metavar="N", type=int, default=20, help="frames per second (default: 20)"
    )
    parser.add_argument(
        "--crf", metavar="N", type=int, default=23, help="quality: 0 lossless, 23 default, 51 worst"
    )


def _run(arguments: argparse.Namespace) -> int:
    from rllib_minestudio.experiments.evaluate_checkpoint import (
        EvaluationRequest,
        evaluate_checkpoint,
    )

    warn_if_deterministic(arguments)
    return evaluate_checkpoint(
        EvaluationRequest(
            checkpoint=arguments.checkpoint,
            options=_options(arguments),
            out=arguments.out,
            compare=arguments.compare,
            overrides=arguments.set,
            workers=arguments.workers,
            envs=arguments.envs,
            gpus=arguments.gpus,
            env=arguments.env,
            agent_timeout_s=arguments.agent_timeout,
            verbose=arguments.verbose,
        )
    )


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what is evaluated and recorded, as fields of `EvaluationOptions`."""
    names = ("episodes", "seed", "filter", "deterministic", "max_steps", "only", "kl_to")
    options = {name: getattr(arguments, name) for name in names}
    if arguments.record:
        options["record"] = {
            "folder": arguments.record,
            "format": arguments.format,
            "source": arguments.source,
            "overlay": arguments.overlay,
            "media": arguments.media,
            "fps": arguments.fps,
            "crf": arguments.crf,
        }
    return options
