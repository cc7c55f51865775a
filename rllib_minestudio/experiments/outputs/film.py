"""Films an agent: whole episodes, played with a checkpoint's policy, in one video."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.actions import ActionMapper
from rllib_minestudio.evaluation.inference import Policy
from rllib_minestudio.evaluation.policies import play_episodes
from rllib_minestudio.recordings.key_strip import with_key_strip
from rllib_minestudio.recordings.video import VideoWriter


def film_checkpoint(
    env: gym.Env, checkpoint: str | Path, video: Path, episodes: int = 1, seed: int | None = None
) -> None:
    """Play episodes with the policy of a checkpoint and write them to one video.

    Beneath each frame stand the keys that the policy pressed at it, the return so far, and the
    value, which is the discounted return that it expects from there on.

    Args:
        env: Where to play; it is closed at the end.
        checkpoint: Folder of a checkpoint.
        video: The file, an mp4; it appears once it is complete.
        episodes: How many to play.
        seed: Of the first episode; None continues the environment's own sequence.

    Raises:
        CheckpointMismatchError: The folder holds no policy that can play.
        CheckpointError: It is damaged.
        RecordingError: The video cannot be written.
    """
    try:
        policy = Policy.load(checkpoint, env)
        options = getattr(env.unwrapped, "options", None)
        mapper = ActionMapper(getattr(options, "camera_config", None))
        with VideoWriter(video) as writer:

            def add_frame(action: Any, total: float) -> None:
                value = 0.0 if policy.value is None else float(policy.value)
                numbers = {"return": total, "value": value}
                frame = np.asarray(env.render())
                writer.add(with_key_strip(frame, mapper.keys_of(action), numbers))

            play_episodes(env, policy, episodes, seed=seed, on_action=add_frame)
    finally:
        env.close()
