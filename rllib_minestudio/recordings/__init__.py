"""Episodes on disk: one folder per episode, written in a stream, read without pickle.

The format is described in docs/evaluation.md.
"""

from rllib_minestudio.recordings.reader import Recording, find_recordings
from rllib_minestudio.recordings.writer import EpisodeWriter

__all__ = ["EpisodeWriter", "Recording", "find_recordings"]
