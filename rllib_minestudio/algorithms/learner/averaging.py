"""A copy of the module that follows the weights smoothly, to evaluate and to export."""

from __future__ import annotations

import copy
from typing import Any

from rllib_minestudio.models.fine_tuning import WeightAverage
from rllib_minestudio.models.recurrent_rl_module import RecurrentRLModule


class AveragedModule:
    """A module whose weights are the moving average of another's.

    Args:
        module: The one in training.
        decay: See `WeightAverage`.
    """

    def __init__(self, module: RecurrentRLModule, decay: float) -> None:
        """Start from the present weights."""
        self.average = WeightAverage(module.network, decay)
        self.module = copy.deepcopy(module)
        # The module holds the very tensors that the average updates in place.
        self.module.network.load_state_dict(dict(self.average.weights()), assign=True)

    @property
    def updates(self) -> int:
        """How many optimizer steps have entered."""
        return self.average.state_dict()["updates"]

    def restore(self, updates: int, weights: dict[str, Any] | None) -> None:
        """Go on from a checkpoint.

        Args:
            updates: As saved.
            weights: What `module.get_state` returned, or None if the module has them already.
        """
        if weights is not None:
            self.module.set_state(weights)
        self.average.load_state_dict({"updates": updates, "average": self.average.weights()})
