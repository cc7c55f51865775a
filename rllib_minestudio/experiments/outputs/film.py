"""Films an agent: whole episodes, played with a checkpoint's policy, in one video."""

from pathlib import Path

import gymnasium as gym

from rllib_minestudio.evaluation.inference import Policy
from rllib_minestudio.evaluation.policies import play_episodes
from rllib_minestudio.recordings.video import VideoWriter


def film_checkpoint(
    env: gym.Env, checkpoint: str | Path, video: Path, episodes: int = 1, seed: int | None = None
) -> None:
    """Play episodes with the policy of a checkpoint and write them to one video.

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
        with VideoWriter(video) as writer:
            play_episodes(env, policy, episodes, seed=seed, video=writer)
    finally:
        env.close()
