"""Several environments behind one interface: `send` actions to some, `recv` whichever are ready.

Imports neither Ray nor torch, because the environments' processes start with this package.
"""

from rllib_minestudio.algorithms.env_pool.base import EnvPool, Episode, EpisodeSource, PoolStep
from rllib_minestudio.algorithms.env_pool.inline_envs import InlineEnvs
from rllib_minestudio.algorithms.env_pool.process_envs import ProcessEnvs
from rllib_minestudio.algorithms.options import EnvPoolOptions

__all__ = [
    "EnvPool",
    "EnvPoolOptions",
    "Episode",
    "EpisodeSource",
    "InlineEnvs",
    "PoolStep",
    "ProcessEnvs",
]
