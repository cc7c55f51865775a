"""Checkpoints on disk: what one says about itself, where a trial keeps them, which one is meant.

`open` finds a checkpoint once; what it returns is handed to everything that asks about it. Imports
no Ray, and torch (`tensor_files.py`) and NumPy only when a file is read that needs them: commands
that look for a folder stay quick.
"""

from rllib_minestudio.checkpoints.checkpoint import Checkpoint, Source, open

__all__ = ["Checkpoint", "Source", "open"]
