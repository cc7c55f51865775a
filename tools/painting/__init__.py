"""Paints the pictures of the package; `python -m tools.painting` writes all of them again.

The pictures are files in `rllib_minestudio/env/voxel/resource_pack/`. Shapes drawn by hand are text
files here (`*.txt`, one letter per colour); what is derived from them is in tables (`*.csv`).
"""
