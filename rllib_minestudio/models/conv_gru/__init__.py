"""A small policy: convolutions, a GRU, and whatever else of observations it is shown."""

from rllib_minestudio.models.conv_gru.network import ConvGRUConfig, ConvGRUNetwork

__all__ = ["ConvGRUConfig", "ConvGRUNetwork"]
