"""`rllib record`: demonstrations of a task by a scripted agent."""

from __future__ import annotations

import argparse
from pathlib import Path

from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.experiments.evaluate_checkpoint import RecordingRequest
from rllib_minestudio.experiments.experiment_file import make_importable
from rllib_minestudio.foundation.console import counted, phase, print_next, quoted, stdout
from rllib_minestudio.foundation.names import agents_help
from rllib_minestudio.foundation.processes import machine_cpus

DESCRIPTION = f"""\
Record demonstrations: a scripted agent, or one of your own, plays the task of an experiment file.

Every episode becomes a folder DIR/episodes/episode-NNNNN with its video, actions, rewards and
infos (docs/evaluation.md); --format writes the files of others instead (docs/data.md). Episode i
is played with seed SEED + i and depends on nothing else: the same command continues where it was
interrupted, and the same seeds give the same episodes.

agents:
{agents_help()}
  MODULE:FUNCTION             a function that makes an agent of your own (docs/agents.md): its
                              module is imported, which runs its code

A hunter hunts the prey of the episode's task, if it names one: with
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
    """Declare `rllib record`."""
    add_flags(parser, RecordingRequest, record)


def record(request: RecordingRequest) -> int:
    """Run `rllib record` and return the exit status.

    Raises:
        MineStudioError: The file, an option or the folder is invalid, or recording failed.
    """
    from rllib_minestudio.demonstrations.recording import EPISODES_FOLDER, missing
    from rllib_minestudio.demonstrations.recording import record as record_episodes
    from rllib_minestudio.experiments.ray_session import set_environment

    make_importable(Path.cwd())
    set_environment()
    from rllib_minestudio.experiments.recording_order import recording_order  # and Ray

    order = recording_order(request)
    left = len(missing(order, request.out, request.episodes))
    kept = request.episodes - left
    if kept:
        stdout.print(f"{kept} of {request.episodes} episodes are already recorded")
    returns = []
    workers = request.workers or machine_cpus()
    with phase(f"recording {counted(left, 'episode')}") as show:
        for episode in record_episodes(order, request.out, request.episodes, workers):
            returns.append(episode.undiscounted_return)
            mean = sum(returns) / len(returns)
            show(f"{len(returns)} of {left}, mean return {mean:.2f}")
    if returns:
        played = counted(len(returns), "episode")
        stdout.print(f"mean return of {played}: {sum(returns) / len(returns):.2f}")
    folder = request.out / EPISODES_FOLDER
    stdout.print(f"demonstrations: {folder}", markup=False)
    command = f"rllib train file FILE --set input_={quoted(folder)}"
    print_next({command: "clone them; FILE for cows is cow_bc"})
    return 0
