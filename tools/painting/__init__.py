"""Paints the pictures of the package; `python -m tools.painting` writes them all again.

The pictures are files of `rllib_minestudio/env/voxel/resource_pack/`. What is drawn by eye lies
here as text (`*.txt`, one letter for a colour); what derives from it lies in tables (`*.csv`).
"""
