"""`rllib play`: a scripted agent or a checkpoint plays the task of an experiment file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_minestudio.console import phase
from rllib_minestudio.errors import InvalidOptionsError, RecordingError, did_you_mean
from rllib_minestudio.experiments.reading.experiment_file import load_experiments
from rllib_minestudio.experiments.reading.named_objects import make_importable
from rllib_minestudio.experiments.running.ray_session import quieten, set_environment
from rllib_minestudio.option_checks import broken_rule

if TYPE_CHECKING:
    import gymnasium as gym

SCRIPTED = ("hunter", "random")


def play_task(
    task: Path,
    agent: str,
    out: str,
    episodes: int = 1,
    seed: int = 0,
    overrides: Sequence[str] = (),
) -> list[float]:
    """Let an agent play a task, and record each episode with actions and rewards written on it.

    Args:
        task: An experiment file; of several experiments the first one counts.
        agent: `hunter`, `random`, or the folder of a checkpoint.
        out: Folder of the recordings, one folder per episode.
        episodes: How many to play.
        seed: Of the first episode.
        overrides: `key=value`, changes of the experiment.

    Returns:
        The undiscounted return of each episode.

    Raises:
        MineStudioError: The file, an option, the checkpoint or the folder is not in order.
    """
    _check_agent(agent)
    make_importable(Path.cwd())
    set_environment()
    quieten(verbose=False)
    # These import Ray, whose environment variables are set now.
    from rllib_minestudio.env.recorder import EpisodeRecorder
    from rllib_minestudio.env.recorder_options import RecorderOptions
    from rllib_minestudio.evaluation.policies import play_episodes
    from rllib_minestudio.experiments.reading.tune_plan import make_plan
    from rllib_minestudio.experiments.running.environment import make_env

    plan = make_plan(load_experiments(task, overrides)[0])
    options = RecorderOptions(out, source="pov", overlay=True)
    env = EpisodeRecorder(make_env(plan.example), options)
    with phase(f"playing {plan.name}") as show:
        returns = play_episodes(
            env,
            _policy(agent, env, seed),
            episodes,
            seed=seed,
            on_episode=lambda done, _: show(f"episode {done} of {episodes}"),
        )
    env.close()
    if env.failures:
        raise RecordingError(env.failures[0])
    return returns


def _check_agent(agent: str) -> None:
    if agent not in SCRIPTED and not Path(agent).is_dir():
        rule = f"must be {', '.join(SCRIPTED)}, or the folder of a checkpoint"
        raise InvalidOptionsError(
            broken_rule("--agent", agent, rule) + did_you_mean(agent, SCRIPTED)
        )


def _policy(agent: str, env: gym.Env, seed: int) -> Any:
    """Return what chooses the actions."""
    from rllib_minestudio.env.agents import RandomAgent, ScriptedHunter
    from rllib_minestudio.evaluation.policies import ModulePolicy, ScriptedPolicy, load_module

    if agent == "random":
        return ScriptedPolicy(RandomAgent(seed), env)
    if agent == "hunter":
        return ScriptedPolicy(ScriptedHunter(), env)
    return ModulePolicy(load_module(agent, env))
