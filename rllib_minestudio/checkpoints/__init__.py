"""Checkpoints on disk: what one says about itself, where a trial keeps them, which one is meant.

Imports neither Ray nor torch.
"""
