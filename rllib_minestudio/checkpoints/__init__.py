"""Checkpoints on disk: their records, where a trial keeps them, and how a name is resolved to one.

`open` finds a checkpoint once, and all code that needs it gets the returned object. Ray is never
imported, and torch (`tensor_files.py`) and NumPy only to read a file that needs them, so that
commands that only look for a folder stay fast.
"""

from rllib_minestudio.checkpoints.checkpoint import Checkpoint, Source, open

__all__ = ["Checkpoint", "Source", "open"]
