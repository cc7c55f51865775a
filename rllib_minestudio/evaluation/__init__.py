"""Evaluation of trained agents: playing episodes, recording videos, drawing learning curves."""

from typing import TYPE_CHECKING, Any

from rllib_minestudio.foundation.names import load_public_name

if TYPE_CHECKING:
    from rllib_minestudio.evaluation.inference import Policy

__all__ = [
    "Policy",
]

_HOME_OF = {
    "Policy": "rllib_minestudio.evaluation.inference",
}


def __getattr__(name: str) -> Any:
    return load_public_name(__name__, name, _HOME_OF)
