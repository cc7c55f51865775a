"""`rllib record`: demonstrations of a task by a scripted agent."""

from __future__ import annotations

import argparse
from pathlib import Path

from rllib_minestudio.agent_names import HUNTER, agents_help
from rllib_minestudio.cli.argument_types import LARGEST_SEED, MOST_EPISODES, whole_number
from rllib_minestudio.console import counted, phase, stdout
from rllib_minestudio.experiments.reading.named_objects import make_importable
from rllib_minestudio.processor_threads import machine_cpus

NOVICE_STEPS = 300
"""Most steps that a novice plays, unless told otherwise."""

DESCRIPTION = f"""\
Record demonstrations: a scripted agent, or one of your own, plays the task of an experiment file.

Every episode becomes a folder DIR/episodes/episode-NNNNN with its video, actions, rewards and
infos (docs/evaluation.md). Episode i is played with seed SEED + i and depends on nothing else:
the same command goes on where it was interrupted, and the same seeds give the same episodes.

agents:
{agents_help()}
  MODULE:FUNCTION             a function that makes an agent of your own (docs/agents.md): its
                              module is imported, and so is run

A hunter hunts what the episode's task says, where it says so: with
  Task: [{{name: hunt cows, prey: [cow]}}, {{name: hunt sheep, prey: [sheep]}}]
among the callbacks, an episode shows one or the other. What callbacks add to observations is
recorded, so that a policy can learn to follow the task's text.
"""

EXAMPLES = """\
examples:
  rllib record tuned_examples/cow.yaml --agent hunter --prey cow --episodes 200 --out demos/cow
  rllib record tuned_examples/stone_pickaxe_bc.yaml --agent practised-toolmaker --make stone_pickaxe --episodes 600 --out demos/stone_pickaxe/whole
  rllib record tuned_examples/cow.yaml --agent my_module:make_agent --episodes 20 --out demos/mine
  rllib record tuned_examples/cow.yaml --episodes 5 --out demos/large --set 'env_config.obs_size=[128, 128]'
  rllib record tuned_examples/stone_pickaxe_bc.yaml --agent practised-toolmaker --make stone_pickaxe --novice results/stone_pickaxe_bc/latest --episodes 400 --seed 10000 --out demos/stone_pickaxe/corrections_1
"""  # noqa: E501


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rllib record`."""
    parser.add_argument("task", metavar="TASK", type=Path, help="an experiment file")
    parser.add_argument(
        "--agent",
        metavar="NAME|MODULE:FUNCTION",
        default=HUNTER,
        help=f"who plays (default: {HUNTER})",
    )
    parser.add_argument(
        "--prey",
        metavar="ANIMAL",
        nargs="+",
        help="what a hunter hunts where the task names no prey: cow, sheep, pig (default: all)",
    )
    parser.add_argument(
        "--make",
        metavar="ITEM",
        help="what a toolmaker makes where the task does not say, stone_pickaxe for example "
        "(default: iron_pickaxe)",
    )
    parser.add_argument(
        "--episodes",
        metavar="N",
        type=whole_number(1, MOST_EPISODES),
        required=True,
        help="number of episodes",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="output folder")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set an option below the task's `config`; repeatable, as in `rllib train file`",
    )
    parser.add_argument(
        "--seed",
        metavar="SEED",
        type=whole_number(0, LARGEST_SEED),
        default=0,
        help="of the first episode (default: 0)",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=whole_number(1, 10_000),
        help="processes that play (default: one per CPU)",
    )
    parser.add_argument(
        "--crf",
        metavar="N",
        type=whole_number(0, 51),
        default=0,
        help="x264's constant rate factor: 0 lossless (the default), 23 good, 51 worst",
    )
    parser.add_argument(
        "--novice",
        metavar="POLICY",
        help="a policy that plays the beginning of every episode until the agent takes over, such "
        "as a clone that is to learn to put its own mistakes right (DAgger); only the agent's "
        "steps are imitated",
    )
    parser.add_argument(
        "--novice-steps",
        metavar="N",
        type=whole_number(1, LARGEST_SEED),
        help=f"most steps that a novice plays, drawn for each episode (default: {NOVICE_STEPS})",
    )
    parser.set_defaults(run=record)


def record(arguments: argparse.Namespace) -> int:
    """Run `rllib record` and return the exit status.

    Raises:
        MineStudioError: The file, an option or the folder is not in order, or recording failed.
    """
    from rllib_minestudio.demonstrations.recording import EPISODES_FOLDER, missing
    from rllib_minestudio.demonstrations.recording import record as record_episodes
    from rllib_minestudio.experiments.running.ray_session import set_environment

    make_importable(Path.cwd())
    set_environment()
    from rllib_minestudio.experiments.reading.recording_order import recording_order  # and Ray

    novice_steps = arguments.novice_steps
    if arguments.novice is not None and novice_steps is None:
        novice_steps = NOVICE_STEPS
    order = recording_order(
        arguments.task,
        arguments.set,
        agent=arguments.agent,
        prey=arguments.prey,
        make=arguments.make,
        seed=arguments.seed,
        crf=arguments.crf,
        novice=arguments.novice,
        novice_steps=novice_steps,
    )
    left = len(missing(order, arguments.out, arguments.episodes))
    kept = arguments.episodes - left
    if kept:
        stdout.print(f"{kept} of {arguments.episodes} episodes are recorded already")
    returns = []
    workers = arguments.workers or machine_cpus()
    with phase(f"recording {counted(left, 'episode')}") as show:
        for episode in record_episodes(order, arguments.out, arguments.episodes, workers):
            returns.append(episode.undiscounted_return)
            mean = sum(returns) / len(returns)
            show(f"{len(returns)} of {left}, mean return {mean:.2f}")
    if returns:
        played = counted(len(returns), "episode")
        stdout.print(f"mean return of {played}: {sum(returns) / len(returns):.2f}")
    stdout.print(f"demonstrations: {arguments.out / EPISODES_FOLDER}", markup=False)
    return 0
