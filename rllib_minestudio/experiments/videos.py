"""Videos of the agent during training: an episode with the weights of every n-th iteration.

The weights come from a checkpoint, and a separate Ray task plays and films the episode while
training continues. The files are `<trial>/videos/iteration_000040.mp4`, where trackers find them
(`NewVideos`).
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from ray import tune
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rllib_minestudio.algorithms.environments import suited_env_options
from rllib_minestudio.checkpoints.checkpoint import POLICY_FOLDER
from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.evaluation.inference import Policy, play_episodes
from rllib_minestudio.experiments.result_metrics import ITERATION
from rllib_minestudio.experiments.trial_checkpoints import link_folder
from rllib_minestudio.recordings.video import VideoWriter, with_key_strip

logger = logging.getLogger(__name__)

NO_FRAMES = (
    "the environment renders no frames. Those of gymnasium do with env_config: {render_mode: "
    "rgb_array}, if the packages for it are installed."
)

VIDEOS = "videos"
WEIGHTS = ".weights_"

MAX_STEPS = 1200
"""Most steps of an episode in a video: a minute of game time."""

SECONDS_FOR_THE_LAST = 120.0
"""How long the end of a run waits for an unfinished video."""


def film(checkpoint: str, env: Any, env_config: dict[str, Any], seed: int, path: str) -> None:
    """Play one episode with a checkpoint's policy and write its video.

    Args:
        checkpoint: Folder that contains the policy as in a checkpoint.
        env: An AlgorithmConfig's `env`.
        env_config: Its `env_config`.
        seed: Seed of the episode.
        path: The video to write, an mp4 file.
    """
    from rllib_minestudio.experiments.environment import build_env

    film_checkpoint(build_env(env, env_config, seed), checkpoint, Path(path), seed=seed)


class RecordVideos(tune.Callback):
    """A callback that films the agent of every `interval`-th iteration that has a checkpoint.

    It makes one video per trial at a time; one that is due earlier is skipped with a warning.

    Args:
        interval: In iterations.
        default_env: Environment of trials whose config names none.
    """

    def __init__(self, interval: int, default_env: Any) -> None:
        self._interval = interval
        self._default_env = default_env
        self._under_way: dict[str, tuple[ray.ObjectRef, Path]] = {}

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Remove leftovers of a killed run; Tune calls this when a trial starts or resumes."""
        for weights in Path(trial.path, VIDEOS).glob(f"{WEIGHTS}*"):
            shutil.rmtree(weights, ignore_errors=True)

    def on_checkpoint(
        self, iteration: int, trials: list[Any], trial: Any, checkpoint: Any, **info: Any
    ) -> None:
        """Start a video if it is due; Tune calls this with each new checkpoint."""
        number = int((trial.last_result or {}).get(ITERATION, 0))
        if number == 0 or number % self._interval:
            return
        self._finish(trial, wait=0.0)
        if trial.trial_id in self._under_way:
            logger.warning("No video of iteration %d: the one before is not finished yet.", number)
            return
        folder = Path(trial.path, VIDEOS)
        # Tune may delete the checkpoint during filming.
        weights = folder / f"{WEIGHTS}{number:06d}"
        try:
            link_folder(Path(checkpoint.path) / POLICY_FOLDER, weights / POLICY_FOLDER)
        except OSError as error:
            logger.warning("No video of iteration %d: %s", number, error)
            return
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        env = trial.config.get("env") or self._default_env
        task = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=here)(film)
        reference = task.remote(
            str(weights),
            env,
            suited_env_options(env, trial.config),
            number,
            str(folder / f"iteration_{number:06d}.mp4"),
        )
        self._under_way[trial.trial_id] = (reference, weights)

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Check whether a video is finished; Tune calls this with each result."""
        self._finish(trial, wait=0.0)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Wait for the last video, so that trackers get it; Tune calls this at a trial's end."""
        self._finish(trial, wait=SECONDS_FOR_THE_LAST)
        if trial.trial_id in self._under_way:
            reference, weights = self._under_way.pop(trial.trial_id)
            ray.cancel(reference, force=True)
            shutil.rmtree(weights, ignore_errors=True)
            logger.warning("The last video was not finished in %.0f s.", SECONDS_FOR_THE_LAST)

    def _finish(self, trial: Any, wait: float) -> None:
        """Clean up after a finished video; log a warning if it failed."""
        if trial.trial_id not in self._under_way:
            return
        reference, weights = self._under_way[trial.trial_id]
        done, _ = ray.wait([reference], timeout=wait)
        if not done:
            return
        del self._under_way[trial.trial_id]
        shutil.rmtree(weights, ignore_errors=True)
        try:
            ray.get(reference)
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            logger.warning("A video could not be made: %s", reason)


def videos_of(trial_folder: Path) -> list[Path]:
    """Return the finished videos of a trial, oldest first."""
    return sorted((trial_folder / VIDEOS).glob("iteration_*.mp4"))


def iteration_of(video: Path) -> int:
    """Return the iteration whose agent a video shows."""
    return int(video.stem.removeprefix("iteration_"))


class NewVideos:
    """The finished videos that a tracker has not been given yet."""

    def __init__(self) -> None:
        self._told: dict[str, set[Path]] = {}

    def skip_present(self, trial: Any) -> None:
        """Skip the videos that exist when a trial starts or resumes."""
        self._told[trial.trial_id] = set(videos_of(Path(trial.path)))

    def of(self, trial: Any) -> list[Path]:
        """Return a trial's new videos, each only once."""
        told = self._told.setdefault(trial.trial_id, set())
        new = [video for video in videos_of(Path(trial.path)) if video not in told]
        told.update(new)
        return new


# ---------------------------------------------------------- films episodes of a checkpoint's policy


def film_checkpoint(
    env: gym.Env,
    checkpoint: str | Path,
    video: Path,
    episodes: int = 1,
    seed: int | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> None:
    """Play episodes with the policy of a checkpoint and write them to one video.

    Below each frame it shows the keys that the policy pressed, the return so far, and the value
    estimate (the expected discounted return from there on).

    Args:
        env: The environment; it is closed at the end.
        checkpoint: Folder of a checkpoint.
        video: The mp4 file, written atomically.
        episodes: Number of episodes.
        seed: Seed of the first episode; None continues the environment's own sequence.
        on_step: Called with (episodes finished, steps of the present one) after each step.

    Raises:
        CheckpointMismatchError: The folder contains no policy that can play.
        CheckpointError: The checkpoint is damaged.
        RecordingError: The video cannot be written.
    """
    try:
        policy = Policy.load(checkpoint, env, trust=True)  # this run has just saved it
        options = getattr(env.unwrapped, "options", None)
        mapper = ActionMapper(getattr(options, "camera_config", None))
        has_keys = "camera" in env.action_space.spaces
        with VideoWriter(video) as writer:

            def add_frame(action: Any, total: float) -> None:
                value = 0.0 if policy.value is None else float(policy.value)
                numbers = {"return": total, "value": value}
                frame = np.asarray(env.render())
                keys = mapper.keys_of(action) if has_keys else {}
                writer.add(with_key_strip(frame, keys, numbers))

            play_episodes(
                env,
                policy,
                episodes,
                seed=seed,
                on_action=add_frame,
                on_step=on_step,
                max_steps=MAX_STEPS,
            )
    finally:
        env.close()
