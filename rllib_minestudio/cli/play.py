"""`rllib play`: watch somebody play a task."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_minestudio.cli.console import phase, stdout
from rllib_minestudio.cli.names import make_importable
from rllib_minestudio.cli.numbers import LARGEST_SEED, MOST_EPISODES, whole_number
from rllib_minestudio.errors import InvalidOptionsError, RecordingError, did_you_mean

if TYPE_CHECKING:
    import gymnasium as gym

DESCRIPTION = """\
Play a task and record it: one folder per episode, with a video.

The player is a scripted agent, which needs no network, or the policy of a checkpoint, which is read
without unpickling. The task's file is to be trusted: it imports the classes that it names.
"""

EXAMPLES = """\
examples:
  rllib play tuned_examples/cow.yaml                         a hunter that knows where the cows are
  rllib play tuned_examples/cow.yaml --agent random
  rllib play tuned_examples/cow.yaml --agent CHECKPOINT --episodes 3 --out plays/
"""

SCRIPTED = ("hunter", "random")


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rllib play`."""
    parser.add_argument("task", metavar="TASK", help="an experiment file")
    parser.add_argument(
        "--agent", default="hunter", help="hunter, random, or the folder of a checkpoint"
    )
    parser.add_argument(
        "--episodes", metavar="N", type=whole_number(1, MOST_EPISODES), default=1, help="default: 1"
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=whole_number(0, LARGEST_SEED),
        default=0,
        help="of the first episode",
    )
    parser.add_argument("--out", metavar="DIR", default="plays", help="default: ./plays")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set an option below the task's `config`, as in `rllib train file`",
    )
    parser.set_defaults(run=play)


def play(arguments: argparse.Namespace) -> int:
    """Run `rllib play` and return the exit status.

    Raises:
        MineStudioError: The file, an option, the checkpoint or the folder is not in order.
    """
    from rllib_minestudio.cli.environment import make_env
    from rllib_minestudio.cli.experiment import load_experiments
    from rllib_minestudio.cli.plan import make_plan
    from rllib_minestudio.cli.ray_session import quieten, set_environment
    from rllib_minestudio.env.recorder import EpisodeRecorder, RecorderOptions
    from rllib_minestudio.evaluation.policies import play_episodes

    _check_agent(arguments.agent)
    make_importable(Path.cwd())
    set_environment()
    quieten(verbose=False)
    plan = make_plan(load_experiments(Path(arguments.task), arguments.set)[0])
    options = RecorderOptions(arguments.out, source="pov", overlay=True)
    env = EpisodeRecorder(make_env(plan.example), options)
    with phase(f"playing {plan.name}") as show:
        returns = play_episodes(
            env,
            _policy(arguments.agent, env, arguments.seed),
            arguments.episodes,
            seed=arguments.seed,
            on_episode=lambda done, _: show(f"episode {done} of {arguments.episodes}"),
        )
    env.close()
    stdout.print(f"returns: {', '.join(f'{value:g}' for value in returns)}")
    if env.failures:
        raise RecordingError(env.failures[0])
    stdout.print(f"recordings: {arguments.out}")
    return 0


def _check_agent(agent: str) -> None:
    if agent not in SCRIPTED and not Path(agent).is_dir():
        raise InvalidOptionsError(
            f"--agent is {agent!r}: it must be {', '.join(SCRIPTED)}, or the folder of a "
            f"checkpoint.{did_you_mean(agent, SCRIPTED)}"
        )


def _policy(agent: str, env: gym.Env, seed: int) -> Any:
    """Return what chooses the actions."""
    from rllib_minestudio.env.agents import RandomAgent, ScriptedHunter
    from rllib_minestudio.evaluation.policies import ModulePolicy, ScriptedPolicy, load_module

    if agent == "random":
        return ScriptedPolicy(RandomAgent(seed), env)
    if agent == "hunter":
        return ScriptedPolicy(ScriptedHunter(), env)
    return ModulePolicy(load_module(agent))
