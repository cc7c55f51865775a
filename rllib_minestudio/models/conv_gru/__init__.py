"""A small policy: convolutions, encoders of all other parts of an observation, and a GRU."""

from rllib_minestudio.models.conv_gru.network import (
    ConvGRUConfig,
    ConvGRUNetwork,
    Values,
    is_frame,
)

__all__ = ["ConvGRUConfig", "ConvGRUNetwork", "Values", "is_frame"]
