"""Episodes on disk: one folder per episode, written step by step and read without pickle.

docs/evaluation.md describes the format.
"""

from rllib_minestudio.recordings.reader import Recording, find_recordings
from rllib_minestudio.recordings.video import VideoWriter
from rllib_minestudio.recordings.writer import EpisodeWriter

__all__ = ["EpisodeWriter", "Recording", "VideoWriter", "find_recordings"]
