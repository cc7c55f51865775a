"""Builds the backend that the option `engine` names."""

from __future__ import annotations

from rllib_minestudio.env.backends.protocol import Backend
from rllib_minestudio.env.backends.voxel import VoxelBackend
from rllib_minestudio.env.env_options import MINECRAFT, EnvOptions


def make_backend(options: EnvOptions) -> Backend:
    """Build the backend that `options.engine` names.

    Raises:
        EngineError: If it is not available; lists what is missing and how to get it.
    """
    if options.engine == MINECRAFT:
        # Imported late and in this order: the backend cannot be imported without the package.
        from rllib_minestudio.env.backends.minecraft import compat, prerequisites

        prerequisites.require(options.minecraft)
        compat.import_minestudio(options.minecraft.root)
        from rllib_minestudio.env.backends.minecraft.backend import MinecraftBackend

        return MinecraftBackend(options)
    return VoxelBackend(options)
