"""`rllib evaluate`."""

from __future__ import annotations

import argparse

from rllib_minestudio.checkpoints.lookup import HELP
from rllib_minestudio.cli.flags import add_flags, warn_if_deterministic
from rllib_minestudio.experiments.evaluate_checkpoint import EvaluationRequest, evaluate_checkpoint

DESCRIPTION = f"""\
Play whole episodes with the policy of a checkpoint and summarise them.

A fixed set of episodes is played to its end, so that short ones do not count for more. Their
worlds and the policy's random numbers derive from --seed alone: two checkpoints meet the same
worlds, and the number of workers changes nothing. A summary with the success rate, its 95 %
interval and a table per task is printed, and saved as summary.json and summary.html.

What your own runs saved may name callbacks and environments of yours, and paths. A checkpoint from
elsewhere is data: what it asks for beyond that is listed and refused, unless you give --trust.

{HELP}\
  FILE                        an experiment file: the weights that training would start from, such
                              as those of MineStudio or OpenAI
  MODULE:FUNCTION             a function that makes an agent of your own (docs/agents.md): its
                              module is imported, which runs its code; it plays in its own processes
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
    """Declare `rllib evaluate`."""
    add_flags(parser, EvaluationRequest, _run)


def _run(request: EvaluationRequest) -> int:
    warn_if_deterministic(request.options["deterministic"])
    return evaluate_checkpoint(request)
